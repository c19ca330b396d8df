"""Moved to :mod:`m2bridge.linear.residues`."""

from m2bridge.linear.residues import *  # noqa: F403
