"""Engine stage: where this user's data and cache live on this platform."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def _home() -> Path:
    return Path(os.path.expanduser("~"))


def _xdg(variable: str, fallback: Path) -> Path:
    value = os.environ.get(variable, "")
    return Path(value) if value.startswith("/") else fallback


def data_directory() -> Path:
    """``$XDG_DATA_HOME/m2bridge``; without the variable the platform's usual place."""
    usual = _home() / ("Library/Application Support" if sys.platform == "darwin" else ".local/share")
    return _xdg("XDG_DATA_HOME", usual) / "m2bridge"


def cache_directory() -> Path:
    """``$XDG_CACHE_HOME/m2bridge``; without the variable the platform's usual place."""
    usual = _home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")
    return _xdg("XDG_CACHE_HOME", usual) / "m2bridge"
