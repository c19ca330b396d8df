"""Networks as data: recording, canonical text, interpreters, and one reverse pass."""

from m2bridge.programs.instructions import Instruction, ProgramError
from m2bridge.programs.program import Builder, Program, parse_program
from m2bridge.programs.recording import Recorded, Recording, record, record_call

__all__ = [
    "Builder", "Instruction", "Program", "ProgramError", "Recorded", "Recording", "parse_program", "record", "record_call",
]  # fmt: skip
