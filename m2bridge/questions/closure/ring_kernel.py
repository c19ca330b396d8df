"""The ideal of the closure as the kernel of the ring map, computed by Macaulay2: the reference method.

Interpolation and the kernel are witnesses for each other.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from m2bridge.certainty import Certainty
from m2bridge.evidence import Evidence
from m2bridge.families.base import Model
from m2bridge.linear.residues import reduce_polynomial
from m2bridge.protocol import Values
from m2bridge.questions.closure.completeness import MONOMIAL_RANKS, cone_series, fresh_points_evidence
from m2bridge.questions.closure.findings import Findings
from m2bridge.questions.closure.interpolation import Equations, begin_interpolation
from m2bridge.questions.closure.lifting import Lift, lift_linear_forms, substitute
from m2bridge.questions.closure.result import KERNEL
from m2bridge.questions.closure.size import ImageSize, count_degree, measure
from m2bridge.questions.closure.stages import Complete, LimitStop, Report, Setting, TooFewPoints

HILBERT_DEGREES = 6
"""How far the Hilbert function is computed unless a degree is given."""
_SHARE_FOR_COMPARISON = 0.9
"""The kernel is the last step; the rest of the time is for the certificate."""
_RATIONAL_SPAN = 6
"""The kernel over QQ is computed for a comparison up to this many coordinates, over F_p beyond."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RingKernel:
    """What the template of the kernel emitted over F_p, or over QQ for p = 0, and the limit that ended it, if one did."""

    values: Values
    p: int
    limit: str | None

    @property
    def counts(self) -> dict[int, int]:
        """Return degree -> number of minimal generators."""
        return dict(sorted(Counter(self.values.integers("generator_degrees")).items()))

    @property
    def lacking(self) -> str:
        """Return why the kernel, or a later step, was not computed."""
        return self.limit or "Macaulay2 reached a limit"


def best_source(model: Model) -> Model:
    """Return the parametrization that makes `ker` fastest: (A, V), in R/minors(a+1, A) when 1 < a < d; (Q, K, V) for a = 1."""
    layer = model.knowledge.layer
    if layer is None:
        return model
    return layer.by_weights if layer.a == 1 and layer.d > 1 else layer.by_attention


def ring_kernel(
    setting: Setting, p: int, hilbert_degrees: int | None, share: float | None = None
) -> RingKernel:
    """Compute the kernel of the ring map over F_p, or over QQ for p = 0."""
    setting.context.report_progress("kernel")
    request = {
        "p": p,
        "hilbertDegrees": hilbert_degrees or HILBERT_DEGREES,
        "imageIsCone": not setting.image.padded,
    }
    source = best_source(setting.model) if setting.model.polynomial else setting.image.source
    values, limit = setting.context.run_template("closure_kernel", request, source, share=share)
    return RingKernel(values=values, p=p, limit=limit)


# -- the kernel as the method ----------------------------------------------------------------------------------------


def closure_by_kernel(setting: Setting, max_degree: int | None, *, alone: bool = False) -> Findings:
    """Compute the closure by the kernel; unless `alone`, interpolation up to its generators' degrees is the second witness."""
    size = measure(setting, setting.image.span(setting.rng(), setting.prime))
    kernel = ring_kernel(setting, 0 if setting.rational else setting.prime, max_degree)
    obstacles = () if kernel.limit is None else (LimitStop(kernel.limit),)
    findings = Findings(
        setting=setting, size=size, equations=Equations(span=size.span), methods=("kernel",),
        obstacles=obstacles, report=Report(evidence=size.evidence),
    )  # fmt: skip
    if "generators" not in kernel.values:
        sentence = f"{KERNEL}, and hence the equations: {kernel.lacking}"
        return findings.with_report(Report(not_shown=(sentence,)))
    equations = _kernel_equations(setting, size, kernel, max_degree)
    size = replace(size, span=equations.span)
    lift, report = (
        _kernel_over_rationals(setting, equations, kernel) if setting.rational else (None, Report())
    )
    over = "QQ" if setting.rational else f"F_{setting.prime}"
    report = Report(shown=(f"the ideal is the kernel of the ring map over {over}",)) + report
    if "degree" not in kernel.values:
        report += Report(not_shown=("codimension and degree: Macaulay2 reached a limit",))
    count = count_degree(setting, size)
    findings = replace(
        findings, size=size, equations=equations, lift=lift, degree=kernel.values.get("degree", count.degree),
        completeness=Complete(exact=lift is not None and lift.exact),
        series=cone_series(kernel.values, equations.span.dim, kernel.p),
    )  # fmt: skip
    stated = (setting.statement("vanishing", True, "kernel", "kernel of the ring map"),)
    report += Report(evidence=stated) + count.report
    fresh = fresh_points_evidence(setting, size, equations.polynomials, setting.prime)
    report += Report(evidence=(*_kernel_evidence(findings, kernel), fresh))
    if not alone:
        report += _interpolation_report(setting, equations)
    return findings.with_report(report)


def _kernel_equations(
    setting: Setting, size: ImageSize, kernel: RingKernel, max_degree: int | None
) -> Equations:
    """Return the kernel's generators modulo the prime of the computation, in the coordinates that Macaulay2 chose."""
    values = kernel.values
    span = replace(size.span, basis=values.integers("span"))
    polynomials = values.polynomials(values["generators"], span.dim, kernel.p)
    if setting.rational:
        polynomials = [reduce_polynomial(f, setting.prime) for f in polynomials]
    return Equations(
        span=span,
        polynomials=tuple(polynomials),
        hilbert_function=values.integers("hilbert_function") if "hilbert_function" in values else (),
        degree_bound=max([max_degree or 1, *kernel.counts]),
    )


def _kernel_over_rationals(
    setting: Setting, equations: Equations, kernel: RingKernel
) -> tuple[Lift | None, Report]:
    """Complete the kernel over QQ by the linear forms, and substitute the coordinates into all equations."""
    forms = lift_linear_forms(setting, equations.span)
    if forms is None:
        return None, Report(not_shown=("the linear forms over QQ: six primes did not determine them",))
    polynomials = kernel.values.polynomials(kernel.values["generators"], equations.span.dim, 0)
    lift = Lift(polynomials=polynomials, linear_forms=forms)
    substituted = substitute(setting, equations.span, lift)
    exact = not forms if substituted.vanishes is None else substituted.vanishes
    return replace(lift, exact=exact), substituted.report


def _interpolation_report(setting: Setting, equations: Equations) -> Report:
    """Compare the kernel with interpolation up to the degrees of its generators."""
    other, top = begin_interpolation(setting, setting.prime), equations.top_degree
    if not other.reach(top):
        reason = "a limit was reached"
        if isinstance(other.stop, TooFewPoints):
            reason = setting.image.too_few_points(other.stop.degree, setting.prime)
        return Report(not_shown=(f"agreement with interpolation: {reason}",))
    method = f"interpolation up to degree {top}"
    evidence = [setting.count_statement("modular", method, other.counts, setting.prime)]
    ranks = other.hilbert_function[: len(equations.hilbert_function)]
    if ranks != equations.hilbert_function[: len(ranks)]:
        evidence.append(setting.statement("hilbert_function", list(ranks), "modular", MONOMIAL_RANKS))
    return Report(evidence=tuple(evidence))


# -- the kernel beside interpolation ---------------------------------------------------------------------------------


def compare_with_kernel(findings: Findings) -> Findings:
    """Compute the kernel too: the same generators and Hilbert function make the interpolated ideal complete."""
    setting, equations = findings.setting, findings.equations
    small = setting.rational and equations.span.dim <= _RATIONAL_SPAN
    kernel = ring_kernel(
        setting, 0 if small else setting.prime, equations.degree_bound, _SHARE_FOR_COMPARISON
    )
    if "hilbert_function" not in kernel.values:
        return findings.with_report(Report(not_shown=(f"{KERNEL}: {kernel.lacking}",)))
    series = cone_series(kernel.values, equations.span.dim, kernel.p)
    compared = replace(findings, methods=(*findings.methods, "kernel"), series=series or findings.series)
    report = Report(evidence=_kernel_evidence(findings, kernel))
    same_ranks = kernel.values.integers("hilbert_function") == equations.hilbert_function
    if kernel.counts != equations.counts or not same_ranks:
        return compared.with_report(report)
    shown = "the kernel of the ring map has as many generators in each degree: the ideals are equal"
    if not findings.complete:
        degree = kernel.values.get("degree", findings.degree)
        compared = replace(compared, completeness=Complete(exact=False), degree=degree)
    return compared.with_report(report + Report(shown=(shown,)))


def _kernel_evidence(findings: Findings, kernel: RingKernel) -> tuple[Evidence, ...]:
    """State generators, Hilbert function, degree and dimension of the kernel."""
    setting, equations, values = findings.setting, findings.equations, kernel.values
    method, over = "kernel of the ring map" + ("" if kernel.p else " over QQ"), kernel.p or None
    sure = {"certainty": Certainty.PROBABLE if kernel.p else Certainty.COMPUTED, "prime": over}
    counts = {k: n for k, n in kernel.counts.items() if findings.complete or k <= equations.degree_bound}
    evidence = [setting.count_statement("macaulay2", method, counts, over)]
    if "hilbert_function" in values:
        ranks = list(values.integers("hilbert_function"))[: len(equations.hilbert_function)]
        more = {"prime": over, "seconds": values.run.seconds}
        evidence.append(setting.statement("hilbert_function", ranks, "macaulay2", method, **more))
    if "degree" in values:
        evidence.append(setting.statement("degree", values["degree"], "macaulay2", method, **sure))
    if "codim" in values:
        dim = values.integer("span_dim") - values.integer("codim") - setting.image.homogenized
        evidence.append(setting.statement("image_dim", dim, "macaulay2", method, **sure))
    return tuple(evidence)
