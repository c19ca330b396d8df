"""Networks as data: recording, canonical text, interpreters, and one reverse pass."""

from m2bridge.programs.builder import Builder
from m2bridge.programs.program import Instruction, Program, ProgramError, parse_program

__all__ = ["Builder", "Instruction", "Program", "ProgramError", "parse_program"]
