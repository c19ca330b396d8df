"""Moved to :mod:`m2bridge.linear.modular`."""

from m2bridge.linear.modular import *  # noqa: F403
