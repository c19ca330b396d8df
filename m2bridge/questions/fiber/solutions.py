"""Count the points of a fiber, or of a slice of it, by msolve: a second witness from the polynomials of the program."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from m2bridge import msolve
from m2bridge.errors import OutOfReachError
from m2bridge.evidence import Evidence
from m2bridge.families.symbolic import symbolic_map
from m2bridge.linear.residues import residue
from m2bridge.questions.fiber.model_symmetries import TorusSlice
from m2bridge.questions.kernel import Context
from m2bridge.questions.point import Point

_SHARE_FOR_POINTS_BY_MSOLVE = 0.5
"""Of the time left, for its job."""
METHOD = "F4 on the program's polynomials"


def fiber_system(point: Point, p: int, sliced: TorusSlice | None) -> msolve.System:
    """Return equations of all weights with the function of the point, and those of the slice, over F_p."""
    model = point.model
    count = model.parameter_count
    constant = (0,) * count
    values = model.coordinates(point.mod(p)).values.tolist()
    rows: list[dict[tuple[int, ...], int | Fraction]] = []
    for polynomial, value in zip(symbolic_map(model), values, strict=True):
        row = {exponents: residue(Fraction(c), p) for exponents, c in polynomial.items()}
        rows.append({**row, constant: (row.get(constant, 0) - int(value)) % p})
    for form, value in sliced.forms if sliced else ():
        row = {tuple(int(j == i) for j in range(count)): int(c) % p for i, c in enumerate(form) if c}
        rows.append({**row, constant: -value % p})
    return msolve.System(variables=tuple(f"w{i}" for i in range(count)), p=p, equations=tuple(rows))


def count_by_msolve(
    context: Context, point: Point, p: int, sliced: TorusSlice | None, over: dict[str, Any]
) -> list[Evidence]:
    """Return evidence of the number of points with multiplicities, if there are finitely many; empty without an answer."""
    if context.msolve is None or point.model.constraints.rank_bounds:
        return []
    try:
        system = fiber_system(point, p, sliced)
    except OutOfReachError:
        return []
    context.report_progress("points of the fiber by msolve")
    answer, _ = context.run_msolve(
        msolve.counting_script("fiber_count", system),
        lambda run: (msolve.standard_monomials(msolve.leading_monomials(run, system)), run.seconds),
        share=_SHARE_FOR_POINTS_BY_MSOLVE,
    )
    if answer is None or answer[0] is None:
        return []
    quantity = "degree of the slice" if sliced else "degree"
    return [Evidence(quantity, answer[0], "msolve", METHOD, seconds=answer[1], **over)]
