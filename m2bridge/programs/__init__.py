"""Networks as data: recording, canonical text, interpreters, and one reverse pass.

- the list: `instructions` (what each line means and its shapes), `program` (the whole, its text and hash), `files` (TOML);
- recording: `recording` (the entrance, and the array that writes down), `numpy_functions` (one table of what NumPy asks),
  `recorder` and `contractions` (what is written, simplified), `refusals`;
- interpreters: `run` (values, tangents), `jacobians` (the reverse pass), over `arithmetics` (float64, F_p, objects, balls),
  `coefficients` (polynomials in the inputs), `gradings` (characters);
- ranks and proofs: `points`, `ranks`, `proofs`.
"""

from m2bridge.programs.instructions import Instruction, ProgramError
from m2bridge.programs.program import Builder, Program, parse_program
from m2bridge.programs.recording import Recorded, Recording, record, record_call

__all__ = [
    "Builder", "Instruction", "Program", "ProgramError", "Recorded", "Recording", "parse_program", "record", "record_call",
]  # fmt: skip
