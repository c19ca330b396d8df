"""Draw figures from results. Plotting libraries are imported only when they are used."""
