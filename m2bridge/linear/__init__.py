"""Linear algebra: F_p (`residues`), exact ranks (`modular`), ranks of real matrices (`numeric`), choice of `primes`."""
