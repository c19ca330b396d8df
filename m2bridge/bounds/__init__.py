"""Upper and lower bounds of the dimension of an image, each with the argument that a certificate carries.

- of a program: `program_upper` (all arguments, until a lower bound is met), `compositions`, `equations`, `analytic`;
- of a model: `model_upper` (without a search), `searched` (vector fields and compositions), `lower` (ranks of the Jacobian),
  `virtual_weights` (both bounds for normalised attention).
"""
