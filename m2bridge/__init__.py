"""From a polynomial network to its geometry, with proof.

>>> import m2bridge
>>> result = m2bridge.singular_locus("lightning(d=2,dp=1)")  # doctest: +SKIP
>>> result.image_dim, result.singular_dim, result.certainty.value  # doctest: +SKIP
(5, 4, 'proved')
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from m2bridge._version import __version__

if TYPE_CHECKING:
    from m2bridge.batch.store import Store
    from m2bridge.claims.ledger import Ledger
    from m2bridge.engine import Limits, open_engine
    from m2bridge.models import (
        MLP,
        Convolution,
        DeepLightning,
        Lightning,
        Linear,
        Model,
        PolynomialMap,
        Softmax,
        from_callable,
        from_sympy,
        parse_spec,
    )
    from m2bridge.models.pytorch import from_torch
    from m2bridge.questions.boundary import Boundary, boundary
    from m2bridge.questions.canonical import Canonical, canonical
    from m2bridge.questions.closure import Closure, closure
    from m2bridge.questions.critical_points import CriticalPoints, critical_points
    from m2bridge.questions.dimension import Dimension, dimension
    from m2bridge.questions.fiber import Fiber, fiber
    from m2bridge.questions.hilbert_series import HilbertSeries, hilbert_series
    from m2bridge.questions.ideal import ideal
    from m2bridge.questions.membership import ImageMembership, membership
    from m2bridge.questions.same import Same, same
    from m2bridge.questions.singular_locus import SingularLocus, singular_locus
    from m2bridge.questions.singular_point import SingularPoint, singular_point
    from m2bridge.questions.symmetries import Symmetries, symmetries
    from m2bridge.records import load as load_record
    from m2bridge.records import save as save_record
    from m2bridge.results import Certainty, Evidence, Result

__all__ = [
    "MLP", "Boundary", "Canonical", "Certainty", "Closure", "Convolution", "CriticalPoints", "DeepLightning", "Dimension",
    "Evidence", "Fiber", "HilbertSeries", "ImageMembership", "Ledger", "Lightning", "Limits", "Linear", "Model",
    "PolynomialMap", "Result", "Same", "SingularLocus", "SingularPoint", "Softmax", "Store", "Symmetries", "__version__",
    "boundary", "canonical", "closure", "critical_points", "dimension", "fiber", "from_callable", "from_sympy", "from_torch",
    "hilbert_series", "ideal", "load_record", "membership", "open_engine", "parse_spec", "same", "save_record",
    "singular_locus", "singular_point", "symmetries",
]  # fmt: skip

_RENAMED = {"load_record": "load", "save_record": "save"}
_MODULES = {
    "questions.boundary": ("Boundary", "boundary"),
    "questions.canonical": ("Canonical", "canonical"),
    "questions.closure": ("Closure", "closure"),
    "questions.critical_points": ("CriticalPoints", "critical_points"),
    "questions.dimension": ("Dimension", "dimension"),
    "questions.fiber": ("Fiber", "fiber"),
    "questions.hilbert_series": ("HilbertSeries", "hilbert_series"),
    "questions.membership": ("ImageMembership", "membership"),
    "questions.ideal": ("ideal",),
    "questions.same": ("Same", "same"),
    "questions.singular_locus": ("SingularLocus", "singular_locus"),
    "questions.singular_point": ("SingularPoint", "singular_point"),
    "questions.symmetries": ("Symmetries", "symmetries"),
    "batch.store": ("Store",),
    "claims.ledger": ("Ledger",),
    "engine": ("Limits", "open_engine"),
    "models": (
        "MLP", "Convolution", "DeepLightning", "Lightning", "Linear", "Model", "PolynomialMap", "Softmax", "from_callable",
        "from_sympy", "parse_spec",
    ),
    "models.pytorch": ("from_torch",),
    "records": ("load_record", "save_record"),
    "results": ("Certainty", "Evidence", "Result"),
}  # fmt: skip
"""Where each public name is defined. It is imported when it is first asked for, so that the command line starts sooner."""
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        value = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), _RENAMED.get(name, name))
    elif not name.startswith("_") and find_spec(f"{__name__}.{name}"):
        value = import_module(f"{__name__}.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
