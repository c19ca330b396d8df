"""From a polynomial network to its geometry, with proof.

>>> import m2bridge
>>> result = m2bridge.singular_locus("lightning(d=2,dp=1)")  # doctest: +SKIP
>>> result.image_dim, result.singular_dim, result.certainty.value  # doctest: +SKIP
(5, 4, 'proved')

The public names stand in ``__init__.pyi``, for type checkers and for this file. Each is imported when it is first asked for, so
that the command line starts soon.
"""

import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from m2bridge._version import __version__ as __version__

_NAMES = re.findall(
    r"^from (\S+) import (\w+) as (\w+)$", Path(__file__).with_suffix(".pyi").read_text("utf-8"), re.MULTILINE
)
_PLACE_OF = {public: (module, name) for module, name, public in _NAMES}
__all__ = sorted(_PLACE_OF)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name in _PLACE_OF:
        module, original = _PLACE_OF[name]
        value = getattr(import_module(module), original)
    elif not name.startswith("_") and find_spec(f"{__name__}.{name}"):
        value = import_module(f"{__name__}.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
