"""Record a Python function of arrays as a program.

The function is called with arrays that record what is done with them, and compared with its program at a random point. What is
neither polynomial nor a supported analytic operation is refused, with its line and what to write instead.

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
from types import CodeType
from typing import Any

import numpy as np

from m2bridge.errors import DisagreementError, M2BridgeError
from m2bridge.frontends.recorded_array import Recorded, index_of
from m2bridge.frontends.recorder import Recorder
from m2bridge.frontends.refusals import RETURNED, located, wrong_input
from m2bridge.programs.evaluation import run
from m2bridge.programs.instructions import NAME, ProgramError, Shape
from m2bridge.programs.program import Builder, Program

__all__ = ["Recorded", "Recording", "record", "record_call"]


@dataclass(frozen=True, slots=True)
class Recording:
    """A recorded network, and notes for every answer about it, for instance that floats were converted exactly."""

    program: Program
    notes: tuple[str, ...] = ()


def record(
    function: Callable[..., Any],
    weights: Mapping[str, Shape],
    inputs: Mapping[str, Shape] | None = None,
    *,
    name: str = "y",
) -> Recording:
    """Record a function that is called with weights and inputs as keyword arguments.

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
    DisagreementError
        At a random point the function has other values than the program.
    """
    code = getattr(function, "__code__", None)
    recording = record_call(lambda w, x: function(**w, **x), weights, inputs, name=name, code=code)
    _compare(function, recording.program)
    return recording


def record_call(
    function: Callable[[dict[str, Recorded], dict[str, Recorded]], Any],
    weights: Mapping[str, Shape],
    inputs: Mapping[str, Shape] | None = None,
    *,
    name: str = "y",
    code: CodeType | None = None,
) -> Recording:
    """Record a function of a dictionary of weights and a dictionary of inputs; see :func:`record`.

    `code` is that of the function whose line an error about its result names.
    """
    recorder = Recorder()
    w = {key: _declared(recorder, "weight", key, shape) for key, shape in weights.items()}
    x = {key: _declared(recorder, "input", key, shape) for key, shape in (inputs or {}).items()}
    try:
        result = function(dict(w), dict(x))
        token = RETURNED.set(code)
        try:
            outputs = _outputs(recorder, result, name)
        finally:
            RETURNED.reset(token)
    except M2BridgeError:
        raise
    except Exception as error:
        raise located(error) from error
    recorder.check_maxima([index for _, index in outputs])
    return Recording(recorder.finished(outputs), _notes(recorder))


def _declared(recorder: Recorder, kind: str, name: str, shape: Shape) -> Recorded:
    lengths = (shape,) if isinstance(shape, int) else tuple(int(n) for n in shape)
    # the method of Builder: an error about a wrong name has no line of the function
    return Recorded(recorder, Builder.write(recorder, kind, (), name, shape=lengths))


def _outputs(recorder: Recorder, result: Any, name: str) -> list[tuple[str, int]]:
    """Name the arrays that the function returned; a list without arrays in it is one array."""
    if result is None:
        raise wrong_input("the function of a network returned nothing; is there a 'return' missing?")
    named = {name: result}
    if isinstance(result, Mapping):
        named = dict(result)
        for key in named:
            if not isinstance(key, str) or not NAME.fullmatch(key):
                raise ProgramError(f"{key!r} is not a name of an output")
    elif isinstance(result, (list, tuple)) and any(
        isinstance(item, (Recorded, np.ndarray)) and item.ndim > 0 for item in result
    ):
        named = {f"{name}{k}": value for k, value in enumerate(result, start=1)}
    return [(key, index_of(recorder, value)) for key, value in named.items()]


def _notes(recorder: Recorder) -> tuple[str, ...]:
    if recorder.first_float is None:
        return ()
    (value, line), count = recorder.first_float, len(recorder.floats)
    which = "A float constant is" if count == 1 else f"{count} float constants are"
    return (
        f"{which} taken as the exact dyadic number: {value!r} is {Fraction(value)} ({line}). "
        "Relations between irrational numbers, such as cos^2 + sin^2 = 1, are lost; for 0.1 write Fraction(1, 10).",
    )


# -- comparison with the function -----------------------------------------------------------------------


_TOLERANCE = 1e-6
"""Of the largest value: a function that differs from its program differs by more at almost every point."""


def _compare(function: Callable[..., Any], program: Program) -> None:
    """Refuse a program whose values differ from those of the function at a random point, in float64.

    A recorded array is no ``np.ndarray``: a function that asks for the class of its arguments may compute something else.
    Entries of the point are multiples of 1/8, so that most polynomials have exact values. There is no comparison where the
    function does not accept float64 arrays, or where a value is not finite.
    """
    rng = np.random.default_rng(0)
    shapes = program.parameters | program.input_shapes
    arrays = {name: rng.integers(-16, 17, size=shape) / 8 for name, shape in shapes.items()}
    with np.errstate(all="ignore"):
        recorded = np.asarray(run(program, arrays, arrays)).ravel()
        try:
            expected = _flat(function(**{name: array.copy() for name, array in arrays.items()}))
        except Exception:  # the function takes recorded arrays only, for instance np.exp(Fraction(1, 2) * x)
            return
    if recorded.shape == expected.shape:
        if not (np.isfinite(expected).all() and np.isfinite(recorded).all()):
            return
        gap = np.abs(recorded - expected).max(initial=0)
        if gap <= _TOLERANCE * (1 + np.abs(expected).max(initial=0)):
            return
    raise DisagreementError(
        "the recorded program differs from the function at random weights and inputs; a function of a network has the same "
        "values whenever it is called, and does not depend on the class of its arguments"
    )


def _flat(result: Any) -> np.ndarray:
    """Join the arrays that a function returned to one vector."""
    if isinstance(result, Mapping):
        result = list(result.values())
    if isinstance(result, (list, tuple)):
        return np.concatenate([_flat(item) for item in result])
    return np.asarray(result, dtype=np.float64).ravel()
