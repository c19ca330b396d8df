"""The arguments of ``np.einsum`` in all their spellings, read into names of axes."""

from __future__ import annotations

import re
from typing import Any

from m2bridge.programs.contractions import Term
from m2bridge.programs.contractions import einsum as sum_of_products
from m2bridge.programs.recorded import Recorded, place_of
from m2bridge.programs.recorder import Recorder
from m2bridge.programs.refusals import wrong_input

_TERM = re.compile(r"[A-Za-z]*(?:\.\.\.[A-Za-z]*)?")


def einsum(recorder: Recorder, *arguments: Any, optimize: Any = False) -> Recorded:
    """``np.einsum("ij,jk->ik", A, B)``, also with an ellipsis, or with lists of integers after each array."""
    if arguments and isinstance(arguments[0], str):
        left, arrow, right = arguments[0].replace(" ", "").partition("->")
        written, operands = left.split(","), list(arguments[1:])
        result = right if arrow else None
    else:
        pairs = len(arguments) // 2
        operands = list(arguments[: 2 * pairs : 2])
        written = [_letters(axes) for axes in arguments[1 : 2 * pairs : 2]]
        result = _letters(arguments[-1]) if len(arguments) % 2 else None
    if len(written) != len(operands) or not all(map(_TERM.fullmatch, [*written, result or ""])):
        raise wrong_input(f"einsum: {','.join(written)!r} does not fit {len(operands)} arrays")
    places = [place_of(recorder, operand) for operand in operands]
    dots = [_dots(term, len(recorder.shape(place))) for term, place in zip(written, places, strict=True)]
    most = max(dots)
    terms = [_names(term, count, most) for term, count in zip(written, dots, strict=True)]
    names = [name for term in terms for name in term]
    if result is None:
        once = sorted(name for name in set(names) if names.count(name) == 1 and name.isalpha())
        output: Term = (*(f"...{k}" for k in range(most)), *once)
    else:
        output = _names(result, most if "." in result else 0, most)
    if len(set(output)) < len(output) or not set(output) <= set(names):
        raise wrong_input(f"einsum: the result {''.join(output)!r} does not fit {','.join(written)!r}")
    return Recorded(recorder, sum_of_products(recorder, terms, output, places))


def _letters(axes: Any) -> str:
    """A list of integers (and Ellipsis) as letters in the same order."""
    every = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    return "".join("..." if k is Ellipsis else every[k] for k in axes)


def _dots(term: str, ndim: int) -> int:
    """How many axes the ellipsis of a term stands for."""
    named = len(term.replace(".", ""))
    if named > ndim or ("." not in term and named != ndim):
        raise wrong_input(f"einsum: {term!r} does not fit an array with {ndim} axes")
    return ndim - named


def _names(term: str, count: int, most: int) -> Term:
    before, dots, after = term.partition("...")
    middle = [f"...{k}" for k in range(most - count, most)] if dots else []
    return (*before, *middle, *after)
