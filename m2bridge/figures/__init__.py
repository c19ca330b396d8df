"""Records in, pictures out. Nothing here runs Macaulay2; plotting libraries are imported only when used."""
