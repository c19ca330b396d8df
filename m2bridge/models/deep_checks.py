"""Which sizes and options of deep lightning attention make sense together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from m2bridge.errors import SpecError
from m2bridge.models.spec import check_choice, check_sizes

if TYPE_CHECKING:
    from m2bridge.models.deep import DeepLightning

PARAMETRIZATIONS = ("weights", "attention", "virtual")


def check_deep(model: DeepLightning) -> None:
    """Refuse impossible combinations; field `argument` of the error names the culprit."""
    if model.layers < 1:
        raise SpecError(
            "deep-lightning: d lists the widths of at least one layer, such as [3,3]", argument="d"
        )
    check_sizes(model.family, d=model.d, a=model.a, t=model.t, heads=model.heads)
    check_choice(model.family, "parametrization", model.parametrization, PARAMETRIZATIONS)
    for name, values in (("a", model.a), ("heads", model.heads)):
        if len(values) != model.layers:
            raise SpecError(
                f"deep-lightning: {name} has {len(values)} entries for {model.layers} layers", argument=name
            )
    if model.skip and len(set(model.d)) > 1:
        raise SpecError(
            f"deep-lightning: skip connections need equal widths, not {list(model.d)}", argument="d"
        )
    if model.parametrization == "virtual" and (model.skip or model.multi_head):
        raise SpecError(
            "deep-lightning: virtual weights exist for one head a layer and no skip connections only",
            argument="parametrization",
        )
