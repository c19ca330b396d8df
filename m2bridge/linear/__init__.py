"""Linear algebra, exact and rigorous: F_p in float64 BLAS, QQ, float64 with a visible gap, balls."""
