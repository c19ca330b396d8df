"""These tests run where PyTorch is installed: ``make test-torch`` makes such an environment."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("torch") else ["test_*.py"]
