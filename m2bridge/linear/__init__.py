"""Exact and rigorous linear algebra, once: F_p (`residues`), exact ranks (`modular`), real ones (`numeric`), and `primes`."""
