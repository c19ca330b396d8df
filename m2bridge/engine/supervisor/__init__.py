"""The supervisor, the parent process of every Macaulay2: a program of its own, run as ``python -I -S DIRECTORY``. See
``__main__``.
"""
