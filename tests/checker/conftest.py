"""Tests of the stand-alone checker share `makers`, which makes programs, certificates and the truth without it."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
