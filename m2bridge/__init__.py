"""From a polynomial network to its geometry, with proof.

>>> import m2bridge
>>> result = m2bridge.singular_locus("lightning(d=2,dp=1)")  # doctest: +SKIP
>>> result.image_dim, result.singular_dim, result.certainty.value  # doctest: +SKIP
(5, 4, 'computed')

Each public name is imported when it is first used, so that the command line starts quickly. ``__init__.pyi`` has the same names
for type checkers.
"""

from importlib import import_module
from typing import Any

from m2bridge._version import __version__ as __version__

_NAMES = {
    "m2bridge.batch.entry": ("run_batch",),
    "m2bridge.batch.store": ("Store",),
    "m2bridge.papers.ledger": ("Ledger",),
    "m2bridge.certainty": ("Certainty",),
    "m2bridge.engine": ("open_engine",),
    "m2bridge.evidence": ("Evidence",),
    "m2bridge.limits": ("Limits",),
    "m2bridge.families": (
        "Convolution", "DeepLightning", "Lightning", "Linear", "MLP", "Model", "PolynomialMap", "Softmax", "from_callable",
        "from_sympy", "from_torch", "parse_spec",
    ),
    "m2bridge.questions.boundary": ("Boundary", "boundary"),
    "m2bridge.questions.closure": ("Closure", "closure"),
    "m2bridge.questions.critical_points": ("CriticalPoints", "critical_points"),
    "m2bridge.questions.dimension": ("Dimension", "dimension"),
    "m2bridge.questions.fiber": ("Fiber", "fiber"),
    "m2bridge.questions.ideal": ("ideal",),
    "m2bridge.questions.membership": ("ImageMembership", "membership"),
    "m2bridge.questions.same": ("Same", "same"),
    "m2bridge.questions.singular_locus": ("SingularLocus", "singular_locus"),
    "m2bridge.questions.singular_point": ("SingularPoint", "singular_point"),
    "m2bridge.questions.identifiable": ("Identifiable", "identifiable"),
    "m2bridge.questions.symmetries": ("Symmetries", "symmetries"),
    "m2bridge.records": ("load_record", "save_record"),
    "m2bridge.results": ("Result",),
}  # fmt: skip
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names}
__all__ = ["__version__", *sorted(_MODULE_OF)]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
