"""Moved to :mod:`m2bridge.linear.stream`."""

from m2bridge.linear.stream import *  # noqa: F403
