"""Networks as data: recording, canonical text, interpreters, and one reverse pass."""

from m2bridge.programs.builder import Builder
from m2bridge.programs.program import Instruction, Program, ProgramError, parse_program
from m2bridge.programs.recording import Recorded, Recording, record, record_call

__all__ = [
    "Builder", "Instruction", "Program", "ProgramError", "Recorded", "Recording", "parse_program", "record", "record_call",
]  # fmt: skip
