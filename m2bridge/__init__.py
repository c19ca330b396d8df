"""From a polynomial network to its geometry, with proof.

>>> import m2bridge
>>> result = m2bridge.singular_locus("lightning(d=2,dp=1)")  # doctest: +SKIP
>>> result.image_dim, result.singular_dim, result.certainty.value  # doctest: +SKIP
(5, 4, 'proved')
"""

from m2bridge._version import __version__
from m2bridge.analyses.singular_locus import SingularLocus, singular_locus
from m2bridge.engine import Limits, open_engine
from m2bridge.models import (
    MLP,
    Convolution,
    DeepLightning,
    Lightning,
    Linear,
    Model,
    Softmax,
    parse_spec,
)
from m2bridge.records import load as load_record
from m2bridge.records import save as save_record
from m2bridge.results import Certainty, Evidence, Result

__all__ = [
    "MLP",
    "Certainty",
    "Convolution",
    "DeepLightning",
    "Evidence",
    "Lightning",
    "Limits",
    "Linear",
    "Model",
    "Result",
    "SingularLocus",
    "Softmax",
    "__version__",
    "load_record",
    "open_engine",
    "parse_spec",
    "save_record",
    "singular_locus",
]
