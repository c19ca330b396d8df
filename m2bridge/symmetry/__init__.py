"""Symmetries of a program, which are searched, verified and named: vector fields and finite groups.

A vector field xi on the weights is an infinitesimal symmetry when J(w) xi(w) = 0 for all weights w, where J is the Jacobian of
the map from weights to functions. It is searched over F_p, lifted to integers, and used after it was verified as an identity.
"""
