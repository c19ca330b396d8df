"""Convert functions of NumPy arrays, PyTorch modules, polynomials as text, and files into programs.

- NumPy: `recording` (entry point), `recorded_array` (its array), `numpy_functions` (tables, fallback), `numpy_rules`,
  `recorder` and `contractions` (which write the instructions), `refusals`;
- PyTorch: `pytorch` (``torch.export``), `aten` (its operations);
- maps: `polynomials`, `rational_functions` (parsers), `polynomial_programs`, `ideals`;
- files: `program_files` (TOML), `checkpoints` (weights).
"""

from m2bridge.frontends.recording import Recorded, Recording, record, record_call

__all__ = ["Recorded", "Recording", "record", "record_call"]
