"""Moved to :mod:`m2bridge.linear.numeric`."""

from m2bridge.linear.numeric import *  # noqa: F403
