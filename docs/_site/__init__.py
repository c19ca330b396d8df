"""Write pages of the site from code: the gallery of worked examples and the reference. ``docs/conf.py`` runs it."""
