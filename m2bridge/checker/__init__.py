"""A separate checker of dimension certificates. A document enters; it returns what was verified, or raises :class:`Rejected`.

Nothing here imports the rest of the package: up to 300 columns only the standard library is used, above that NumPy. The
mathematics it relies on is short:

* the rank of a Jacobian modulo p at an integer point is at most the dimension of the image;
* a ball that does not contain zero proves a real minor to be non-zero, and then the analytic map has that generic rank;
* symmetries, slices, virtual weights and vanishing minors bound the dimension from above (:mod:`m2bridge.checker.upper`).
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from m2bridge.checker.lower import check_lower
from m2bridge.checker.networks import Network, Rejected, read_spec
from m2bridge.checker.upper import check_upper

__all__ = ["Rejected", "check"]


def check(document: Any) -> str:
    """Verify a certificate; a sentence that says what was verified.

    Raises
    ------
    Rejected
        When anything in the document does not hold.
    """
    try:
        return _check(document)
    except Rejected:
        raise
    except (
        KeyError,
        TypeError,
        ValueError,
        IndexError,
        AttributeError,
        ZeroDivisionError,
        OverflowError,
    ) as error:
        raise Rejected(f"the certificate is malformed: {type(error).__name__}: {error}") from None


def _check(document: Any) -> str:
    if not isinstance(document, dict):
        raise Rejected("a certificate is an object")
    wanted = {"version", "model", "claim", "lower", "upper", "sha256"}
    if set(document) != wanted:
        raise Rejected(f"a certificate has the fields {', '.join(sorted(wanted))}")
    if document["version"] != 1 or isinstance(document["version"], bool):
        raise Rejected(f"version {document['version']!r} is not known")
    body = {key: value for key, value in document.items() if key != "sha256"}
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    if hashlib.sha256(text.encode()).hexdigest() != document["sha256"]:
        raise Rejected("the sha256 does not belong to this certificate: something was changed")
    network: Network = read_spec(document["model"])
    claim = document["claim"]
    if set(claim) != {"image_dim", "parameters"}:
        raise Rejected("the claim has the fields image_dim and parameters")
    if claim["parameters"] != network.parameter_dim():
        raise Rejected(
            f"the model has {network.parameter_dim()} parameters, the claim says {claim['parameters']}"
        )
    low = check_lower(network, document["lower"])
    high = check_upper(network, document["upper"])
    if not low == high == claim["image_dim"]:
        raise Rejected(f"the bounds are {low} and {high}, the claim is {claim['image_dim']}")
    return (
        f"{document['model']}: the image has dimension {low}; lower bound by {document['lower']['kind']}, "
        f"upper bound by {document['upper']['kind']}"
    )
