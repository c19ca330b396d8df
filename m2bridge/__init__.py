"""From a polynomial network to its geometry, with proof.

>>> import m2bridge
>>> result = m2bridge.singular_locus("lightning(d=2,dp=1)")  # doctest: +SKIP
>>> result.image_dim, result.singular_dim, result.certainty.value  # doctest: +SKIP
(5, 4, 'proved')
"""

from m2bridge._version import __version__
from m2bridge.analyses.boundary import Boundary, boundary
from m2bridge.analyses.closure import Closure, closure
from m2bridge.analyses.dimension import Dimension, dimension
from m2bridge.analyses.fiber import Fiber, fiber
from m2bridge.analyses.ideal import ideal
from m2bridge.analyses.singular_locus import SingularLocus, singular_locus
from m2bridge.analyses.singular_point import SingularPoint, singular_point
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
from m2bridge.records import load as load_record
from m2bridge.records import save as save_record
from m2bridge.results import Certainty, Evidence, Result

__all__ = [
    "MLP",
    "Boundary",
    "Certainty",
    "Closure",
    "Convolution",
    "DeepLightning",
    "Dimension",
    "Evidence",
    "Fiber",
    "Ledger",
    "Lightning",
    "Limits",
    "Linear",
    "Model",
    "PolynomialMap",
    "Result",
    "SingularLocus",
    "SingularPoint",
    "Softmax",
    "__version__",
    "boundary",
    "closure",
    "dimension",
    "fiber",
    "from_callable",
    "from_sympy",
    "ideal",
    "load_record",
    "open_engine",
    "parse_spec",
    "save_record",
    "singular_locus",
    "singular_point",
]
