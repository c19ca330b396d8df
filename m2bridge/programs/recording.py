"""Recording: a Python function of arrays becomes a program.

The function is called once, with arrays that write down what is done with them. What cannot be part of a polynomial or supported
analytic network is refused, with the line where it stands and what to write instead.

>>> recording = record(lambda W, V, x: V @ (W @ x) ** 2, {"W": (3, 2), "V": (1, 3)}, {"x": (2,)})
>>> print(recording.program.text, end="")
m2bridge program 1
%0 = weight W [3,2]
%1 = weight V [1,3]
%2 = input x [2]
%3 = einsum ab,b->a %0 %2
%4 = power 2 %3
%5 = einsum ab,b->a %1 %4
output y %5
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from m2bridge.errors import InputError, M2BridgeError
from m2bridge.programs.instructions import NAME, ProgramError, Shape
from m2bridge.programs.program import Builder, Program
from m2bridge.programs.recorded import Recorded, place_of
from m2bridge.programs.recorder import Recorder
from m2bridge.programs.refusals import located

__all__ = ["Recorded", "Recording", "record", "record_call"]


@dataclass(frozen=True, slots=True)
class Recording:
    """A recorded network.

    Attributes
    ----------
    program: the network as data.
    notes: sentences that an answer about this network has to carry, for instance that floats were taken as exact dyadic numbers.
    """

    program: Program
    notes: tuple[str, ...] = ()


def record(
    function: Callable[..., Any],
    weights: Mapping[str, Shape],
    inputs: Mapping[str, Shape] | None = None,
    *,
    name: str = "y",
) -> Recording:
    """The program of a function that is called with weights and inputs as keyword arguments.

    Parameters
    ----------
    function: returns an array, or a list, tuple or dictionary of arrays; a nested list of numbers is one array.
    weights, inputs: names and shapes; without inputs the entries of the result are the coordinates of a map.
    name: what a single output is called; several are `name` with 1, 2, ..., or the keys of the dictionary.

    Raises
    ------
    NotPolynomialError
        A line of the function is not polynomial and not one of exp, division or softmax.
    InputError
        Shapes do not fit, or the function ends with an error of its own. The message begins with file and line.
    """
    return record_call(lambda w, x: function(**w, **x), weights, inputs, name=name)


def record_call(
    function: Callable[[dict[str, Recorded], dict[str, Recorded]], Any],
    weights: Mapping[str, Shape],
    inputs: Mapping[str, Shape] | None = None,
    *,
    vanishing: Callable[[dict[str, Recorded]], Any] | None = None,
    name: str = "y",
) -> Recording:
    """As :func:`record`, for a function of a dictionary of weights and a dictionary of inputs.

    `vanishing` returns polynomials in the weights that are zero on the source of the map.
    """
    recorder = Recorder()
    w = {key: _declared(recorder, "weight", key, shape) for key, shape in weights.items()}
    x = {key: _declared(recorder, "input", key, shape) for key, shape in (inputs or {}).items()}
    try:
        outputs = _outputs(recorder, function(dict(w), dict(x)), name)
        zeros = [place for _, place in _outputs(recorder, vanishing(dict(w)), "zero")] if vanishing else []
    except M2BridgeError:
        raise
    except Exception as error:
        raise located(error) from error
    recorder.check_maxima([place for _, place in outputs])
    return Recording(recorder.finished(outputs, zeros), _notes(recorder))


def _declared(recorder: Recorder, kind: str, name: str, shape: Shape) -> Recorded:
    lengths = (shape,) if isinstance(shape, int) else tuple(int(n) for n in shape)
    return Recorded(
        recorder, Builder.write(recorder, kind, (), name, shape=lengths)
    )  # no line of the function is to blame


def _outputs(recorder: Recorder, result: Any, name: str) -> list[tuple[str, int]]:
    if result is None:
        raise InputError("the function of a network returned nothing; is there a 'return' missing?")
    if isinstance(result, Mapping):
        for key in result:
            if not isinstance(key, str) or not NAME.fullmatch(key):
                raise ProgramError(f"{key!r} is not a name of an output")
        return [(key, place_of(recorder, value)) for key, value in result.items()]
    if isinstance(result, (list, tuple)) and _is_several(result):
        return [(f"{name}{k}", place_of(recorder, value)) for k, value in enumerate(result, start=1)]
    return [(name, place_of(recorder, result))]


def _is_several(result: Any) -> bool:
    """Whether a list holds several arrays, and is not one array written as a nested list of numbers."""
    return any(isinstance(item, (Recorded, np.ndarray)) and item.ndim > 0 for item in result)


def _notes(recorder: Recorder) -> tuple[str, ...]:
    if recorder.first_float is None:
        return ()
    (value, line), count = recorder.first_float, len(recorder.floats)
    which = "A float constant is" if count == 1 else f"{count} float constants are"
    return (
        f"{which} taken as the exact dyadic number: {value!r} is {Fraction(value)} ({line}). "
        "Relations between irrational numbers, such as cos^2 + sin^2 = 1, are lost; for 0.1 write Fraction(1, 10).",
    )
