"""``python -m m2bridge`` is the command line."""

from m2bridge.cli import entry

if __name__ == "__main__":
    entry()
