"""Build attention networks from the options of a spec; the arguments of a function are those of the spec of a family.

``lightning`` is :func:`Lightning`, ``deep-lightning`` :func:`DeepLightning`, ``softmax`` :func:`Softmax`, ``attention``
:func:`attention_network`; ``multi-head`` and ``skip-lightning`` are short for ``deep-lightning``.
"""

from __future__ import annotations

from dataclasses import replace

from m2bridge.families.self_attention import Attention


def Lightning(  # a public name
    *,
    d: int,
    dp: int,
    a: int | None = None,
    t: int = 2,
    parametrization: str = "weights",
    coordinate_system: str | None = None,
) -> Attention:
    """Build one layer of lightning self-attention, with d rows of inputs and dp rows of outputs.

    >>> model = Lightning(d=2, dp=1)
    >>> model.spec, model.parameter_count, model.coordinate_count, model.knowledge.formula.value
    ('lightning(d=2,dp=1,a=2,t=2)', 10, 6, 5)
    """
    return Attention(
        widths=(d, dp),
        ranks=None if a is None else (a,),  # type: ignore[arg-type] # a default is filled in
        t=t,
        parametrization=parametrization,
        coordinate_system=coordinate_system,  # type: ignore[arg-type]
        numbered=False,
    )


def DeepLightning(
    *,
    d: tuple[int, ...],
    a: int | tuple[int, ...] | None = None,
    t: int = 3,
    heads: int | tuple[int, ...] | None = None,
    skip: bool = False,
    parametrization: str = "weights",
    coordinate_system: str | None = None,
) -> Attention:
    """Build a composition of lightning attention layers of widths d.

    >>> model = DeepLightning(d=(3, 3, 3), a=(2, 2))
    >>> model.spec, model.parameter_count, model.knowledge.formula.value
    ('deep-lightning(d=[3,3,3],a=[2,2],t=3)', 42, 23)
    """
    return Attention(
        widths=d,
        ranks=a,  # type: ignore[arg-type]
        t=t,
        heads=heads,  # type: ignore[arg-type]
        skip=skip,
        parametrization=parametrization,
        coordinate_system=coordinate_system,  # type: ignore[arg-type]
    )


def Softmax(
    *,
    d: tuple[int, ...],
    a: int | tuple[int, ...] | None = None,
    t: int = 3,
    parametrization: str = "weights",
) -> Attention:
    """Build a network of normalised attention layers of widths d.

    >>> model = Softmax(d=(3, 3, 3), a=(2, 2))
    >>> model.spec, model.knowledge.formula.value
    ('softmax(d=[3,3,3],a=[2,2],t=3)', 25)
    """
    return Attention(widths=d, ranks=a, t=t, softmax=True, parametrization=parametrization)  # type: ignore[arg-type]


def attention_network(  # noqa: PLR0913 -- the fields of the spec
    *,
    d: tuple[int, ...],
    a: int | tuple[int, ...] | None = None,
    t: int = 3,
    heads: int | tuple[int, ...] | None = None,
    r: int = 1,
    skip: bool = False,
    causal: bool = False,
    tied: bool = False,
    positions: bool = False,
    softmax: bool = False,
) -> Attention:
    """Build a network of attention layers with options; r is the power of the scores."""
    return Attention(
        widths=d,
        ranks=a,  # type: ignore[arg-type]
        t=t,
        heads=heads,  # type: ignore[arg-type]
        power=r,
        skip=skip,
        causal=causal,
        tied=tied,
        positions=positions,
        softmax=softmax,
    )


def multi_head(
    *,
    d: int,
    dp: int,
    a: int | None = None,
    heads: int | tuple[int, ...],
    t: int = 2,
    parametrization: str = "weights",
    coordinate_system: str | None = None,
) -> Attention:
    """Build one layer of lightning self-attention with several heads."""
    layer = Lightning(
        d=d, dp=dp, a=a, t=t, parametrization=parametrization, coordinate_system=coordinate_system
    )
    return replace(layer, numbered=True, heads=heads)  # type: ignore[arg-type] # one for all layers


def skip_lightning(
    *,
    d: tuple[int, ...],
    a: int | tuple[int, ...] | None = None,
    t: int = 3,
    heads: int | tuple[int, ...] | None = None,
    parametrization: str = "weights",
    coordinate_system: str | None = None,
) -> Attention:
    """Build lightning attention layers of equal widths with skip connections."""
    return DeepLightning(
        d=d, a=a, t=t, heads=heads, skip=True, parametrization=parametrization, coordinate_system=coordinate_system
    )  # fmt: skip
