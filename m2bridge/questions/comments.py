"""Add comments to answers: statements of papers about them, by functions that packages announce.

A package announces a function in the group of entry points ``m2bridge.comments``. It takes the name of the question, its subject
and the answer, and returns fields of the answer that its type lists in ``COMMENT_FIELDS``. Comments are not used in the
computation, and cannot change another field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from m2bridge.errors import InputError
from m2bridge.results import Result

GROUP = "m2bridge.comments"
Comment = Callable[[str, Any, Any], Mapping[str, Any]]


@cache
def _functions() -> tuple[tuple[str, Comment], ...]:
    """Load the announced functions, sorted by name; reading entry points takes a tenth of a second."""
    points = sorted(entry_points(group=GROUP), key=lambda point: point.name)
    return tuple((point.name, point.load()) for point in points)


def comments_on(question: str, subject: Any, answer: Result) -> dict[str, Any]:
    """Return the fields of the answer that comments fill; of two comments on one field the first counts."""
    fields: dict[str, Any] = {}
    if not answer.COMMENT_FIELDS:
        return fields
    for name, comment in _functions():
        commented = dict(comment(question, subject, answer))
        if unknown := sorted(set(commented) - set(answer.COMMENT_FIELDS)):
            raise InputError(f"the comment {name!r} sets the field {unknown[0]!r} of {question}")
        fields = commented | fields
    return fields
