"""Write certificates: documents with which a proved answer can be checked without this package."""
