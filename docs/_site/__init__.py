"""What makes pages of the site from code: the gallery's worked examples, the reference. Run by ``docs/conf.py``."""
