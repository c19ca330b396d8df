"""Build attention networks from the options of a spec; the arguments of a function are those of the spec of a family.

``lightning`` and ``multi-head`` are :func:`Lightning`, ``softmax`` is :func:`Softmax`, ``deep-lightning``, ``skip-lightning`` and
``attention`` are :func:`DeepLightning`.
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
    heads: int | tuple[int, ...] | None = None,
    parametrization: str = "weights",
    coordinate_system: str | None = None,
) -> Attention:
    """Build one layer of lightning self-attention, with d rows of inputs and dp rows of outputs; perhaps with several heads.

    >>> model = Lightning(d=2, dp=1)
    >>> model.spec, model.parameter_count, model.coordinate_count, model.knowledge.formula.value
    ('lightning(d=2,dp=1,a=2,t=2)', 10, 6, 5)
    """
    layer = Attention(
        widths=(d, dp),
        ranks=None if a is None else (a,),  # type: ignore[arg-type] # a default is filled in
        t=t,
        parametrization=parametrization,
        coordinate_system=coordinate_system,  # type: ignore[arg-type]
        numbered=False,
    )
    return layer if heads is None else replace(layer, numbered=True, heads=heads)  # type: ignore[arg-type]


def DeepLightning(  # noqa: PLR0913 -- the fields of the spec
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
    parametrization: str = "weights",
    coordinate_system: str | None = None,
) -> Attention:
    """Build a composition of attention layers of widths d, lightning unless `softmax`; r is the power of the scores.

    >>> model = DeepLightning(d=(3, 3, 3), a=(2, 2))
    >>> model.spec, model.parameter_count, model.knowledge.formula.value
    ('deep-lightning(d=[3,3,3],a=[2,2],t=3)', 42, 23)
    """
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
        parametrization=parametrization,
        coordinate_system=coordinate_system,  # type: ignore[arg-type]
    )


def Softmax(
    *,
    d: tuple[int, ...],
    a: int | tuple[int, ...] | None = None,
    t: int = 3,
    causal: bool = False,
    tied: bool = False,
    positions: bool = False,
    parametrization: str = "weights",
) -> Attention:
    """Build a network of normalised attention layers of widths d.

    >>> model = Softmax(d=(3, 3, 3), a=(2, 2))
    >>> model.spec, model.knowledge.formula.value
    ('softmax(d=[3,3,3],a=[2,2],t=3)', 25)
    """
    return DeepLightning(
        d=d, a=a, t=t, causal=causal, tied=tied, positions=positions, softmax=True, parametrization=parametrization
    )  # fmt: skip
