"""Networks as data: canonical text, interpreters, and one reverse pass.

- the list: `instructions` (what each line means and its shapes), `program` (the whole, its text and hash);
- interpreters: `evaluation` (a program at given arrays), `run` (values, tangents), `jacobians` (the reverse pass), over
  `arithmetics` (float64, F_p, objects), `exponentials` (units modulo p), `coefficients` (polynomials in the inputs),
  `gradings` (characters);
- ranks: `points`, `ranks`, `probe` (derivatives in two ways); `layers` matches linear layers, `work` counts work.
"""

from m2bridge.programs.instructions import Instruction, ProgramError
from m2bridge.programs.program import Builder, Program, parse_program

__all__ = [
    "Builder", "Instruction", "Program", "ProgramError", "parse_program",
]  # fmt: skip
