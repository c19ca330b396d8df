"""Networks as data: recording, canonical text, interpreters, and one reverse pass.

Where to look:

- the list: `instructions` (what each line means and its shapes), `program` (the whole, its text and hash), `files` (TOML);
- recording: `recording` (the entrance), `recorded` (the array that writes down), `recorder` (what is written, simplified),
  `contractions`, `divisions`, `indexing`, `constants`, `refusals`; `numpy_functions`, `numpy_axes`, `numpy_products` for what
  NumPy asks;
- interpreters: `run` (values, tangents), `reverse` (rows of Jacobians), on arrays with `lettered` axes, over `arithmetics`
  (float64, F_p, objects), `balls`, `coefficients` (polynomials in the inputs), `gradings` (characters); `degrees`, `macaulay2`;
- ranks and proofs: `points`, `blocks`, `ranks`, `proofs`, `checks`.
"""

from m2bridge.programs.instructions import Instruction, ProgramError
from m2bridge.programs.program import Builder, Program, parse_program
from m2bridge.programs.recording import Recorded, Recording, record, record_call

__all__ = [
    "Builder", "Instruction", "Program", "ProgramError", "Recorded", "Recording", "parse_program", "record", "record_call",
]  # fmt: skip
