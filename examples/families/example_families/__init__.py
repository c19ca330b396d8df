"""Families of networks for m2bridge; the entry points of the package name their classes."""
