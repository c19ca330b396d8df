"""Tables of dimensions with several heads and with skip connections: ``python results/dimension/make_tables.py``."""

from __future__ import annotations

from itertools import product
from pathlib import Path

from m2bridge.questions.dimension import Dimension, dimension

HERE = Path(__file__).parent

MULTI_HEAD = """\
# One lightning layer with several heads

Made by `python results/dimension/make_tables.py`. The layer is the sum over H heads of V_h X X^T A_h X, t = 2.

{table}

Section 4 of Henry, Marchetti and Kohn expects new symmetries from permutations of the heads. Permutations are a finite
group and change no dimension. What does change it, for a >= d, is GL(H): the layer depends only on the matrix
sum_h A_h (x) V_h, of rank at most H, so that heads can be mixed linearly, not just permuted. For a < d a mixture need
not keep the ranks, but the same matrix bounds the dimension: d = d' = 3, a = 2, H = 3 has 45, not 3 * 16 = 48. So the
fibers are larger than permutations suggest. A row that is not proved shows its proved interval. (By hand: for d = 3,
d' = 1, H = 2 the layer is three quadrics that share the point where v_1 = v_2 = 0, so their resultant vanishes, and the
dimension is at most 17. The program does not find this equation yet.)
"""

SKIP = """\
# Lightning attention with skip connections

Made by `python results/dimension/make_tables.py`. Each layer is X + V X X^T K^T Q X; all widths are d.

{table}

Section 4 of Henry, Marchetti and Kohn believes that with skip connections the parametrization by (M, L) is generically
one-to-one, because the model is no longer homogeneous. Two things are seen here. The scaling (A / s, s V) of each layer
survives, since the layer depends only on A (x) V; so the weights are not determined even up to finitely many choices.
And GL(d) between the layers is gone, so that the network no longer factors through (M, L): for t >= 2 the dimension
is that of the weights (A_i, V_i) less one scaling a layer, sum_i (dim D_a + d^2 - 1), in every row above. For t = 1 only
the symmetric parts of the A_i are seen, which is less when a >= 2. A row that is not proved shows its proved interval.
"""


def row(sizes: tuple[object, ...], spec: str) -> str:
    found: Dimension = dimension(spec, engine=False, certify=False)
    interval = (
        "" if found.lower_bound == found.upper_bound else f" ({found.lower_bound} to {found.upper_bound})"
    )
    cells = (
        *sizes,
        found.parameters,
        f"{found.image_dim}{interval}",
        found.certainty.value,
        found.generic_fiber_dim,
    )
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def table(names: tuple[str, ...], rows: list[str]) -> str:
    cells = (*names, "weights", "dimension", "certainty", "generic fiber")
    return "\n".join(["| " + " | ".join(cells) + " |", "|" + " --- |" * len(cells), *rows])


def main() -> None:
    rows = [
        row((d, dp, a, h), f"multi-head(d={d},dp={dp},a={a},heads={h},t=2)")
        for d, dp, a, h in product((2, 3), (1, 2, 3), (1, 2, 3), (1, 2, 3, 4))
        if a <= d
    ]
    text = MULTI_HEAD.format(table=table(("d", "d'", "a", "H"), rows))
    (HERE / "multi-head.md").write_text(text, encoding="utf-8")
    rows = []
    for depth, d, a, t in product((1, 2, 3), (2, 3), (1, 2, 3), (1, 2, 3)):
        if a > d or (depth == 3 and d == 3):
            continue
        widths, ranks = ",".join([str(d)] * (depth + 1)), ",".join([str(a)] * depth)
        rows.append(row((depth, d, a, t), f"skip-lightning(d=[{widths}],a=[{ranks}],t={t})"))
    (HERE / "skip.md").write_text(SKIP.format(table=table(("l", "d", "a", "t"), rows)), encoding="utf-8")


if __name__ == "__main__":
    main()
