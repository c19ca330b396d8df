"""Moved to :mod:`m2bridge.linear.integer`."""

from m2bridge.linear.integer import *  # noqa: F403
