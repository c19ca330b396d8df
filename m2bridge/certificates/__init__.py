"""Certificates: what a proved dimension leaves behind, so that others can check it without trusting this package."""
