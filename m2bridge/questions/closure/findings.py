"""What the stages of a closure found, in one frozen value, and the answer that is made of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from m2bridge.certainty import Certainty
from m2bridge.certificates.points import closure_certificates
from m2bridge.evidence import Evidence, Relation
from m2bridge.frontends.polynomials import Polynomial
from m2bridge.questions.closure.completeness import ConeSeries
from m2bridge.questions.closure.interpolation import Equations
from m2bridge.questions.closure.lifting import Lift
from m2bridge.questions.closure.result import Closure, Completeness, Equation, equation
from m2bridge.questions.closure.size import ImageSize
from m2bridge.questions.closure.stages import (
    EMPTY,
    Complete,
    LimitStop,
    Obstacle,
    Report,
    Setting,
)
from m2bridge.questions.hilbert import HilbertSeries, expanded

_SHORT_EQUATION = 160
"""Characters; a single equation that is not longer is in every answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The values of all stages, by interpolation, by the kernel, or by both (`methods`).

    `degree` is that of the closure; `completeness` is None if equations of higher degree may exist. `obstacles` are
    the limits, the bad prime or the lack of points that ended a stage.
    """

    setting: Setting
    size: ImageSize
    equations: Equations
    methods: tuple[str, ...]
    degree: int | None = None
    completeness: Complete | None = None
    series: ConeSeries | None = None
    lift: Lift | None = None
    obstacles: tuple[Obstacle, ...] = ()
    report: Report = EMPTY

    def with_report(self, report: Report) -> Findings:
        """Return the findings with more evidence and sentences."""
        return replace(self, report=self.report + report)

    def after(self, stop: Obstacle | None, report: Report) -> Findings:
        """Return the findings after a further stage: with its report, and with what ended it."""
        obstacles = self.obstacles if stop is None else (*self.obstacles, stop)
        return replace(self, obstacles=obstacles, report=self.report + report)

    def has(self, obstacle: type[Obstacle]) -> bool:
        """Return whether an obstacle of this kind was met."""
        return any(isinstance(item, obstacle) for item in self.obstacles)

    @property
    def complete(self) -> bool:
        """Return whether the equations generate the ideal of the closure."""
        return self.completeness is not None

    @property
    def limit(self) -> str | None:
        """Return the first limit that ended a stage."""
        return next((item.reason for item in self.obstacles if isinstance(item, LimitStop)), None)

    @property
    def rational_lift(self) -> Lift | None:
        """Return the equations over QQ, if QQ is the field in question."""
        return self.lift if self.setting.rational else None

    @property
    def over_rationals(self) -> bool:
        """Return whether the findings hold over QQ."""
        return self.size.dense or self.rational_lift is not None

    @property
    def exact(self) -> bool:
        """Return whether completeness, dimension and degree over QQ rest on no random choice."""
        if self.completeness is None:
            return False
        if self.size.dense:
            return self.completeness.exact
        return self.rational_lift is not None and self.rational_lift.exact

    @property
    def image_dim(self) -> int:
        """Return the affine dimension of the image."""
        return self.size.cone_dim - self.setting.image.homogenized


# -- the equations of the answer -------------------------------------------------------------------------------------


def written_equations(findings: Findings) -> tuple[Equation, ...]:
    """Return linear forms, then generators: over QQ if that is the field in question and was reached, else over F_p."""
    span, lift, image = findings.equations.span, findings.rational_lift, findings.setting.image
    constant = span.ambient - 1 if image.homogenized else None

    def write(polynomials: Sequence[Polynomial], names: Sequence[int], p: int) -> Iterator[Equation]:
        return (equation(f, names, p=p, constant=constant) for f in polynomials)

    if lift is not None:
        forms = lift.linear_forms or span.polynomials
        return *write(forms, range(span.ambient), 0), *write(lift.polynomials, span.basis, 0)
    p = findings.setting.prime
    return *write(span.polynomials, range(span.ambient), p), *write(
        findings.equations.polynomials, span.basis, p
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Certificate:
    documents: tuple[Mapping[str, Any], ...] = ()
    stop: LimitStop | None = None
    report: Report = EMPTY


def _certificate(findings: Findings) -> _Certificate:
    """Make the certificate that the equations vanish."""
    setting, equations = findings.setting, written_equations(findings)
    p = 0 if findings.over_rationals else setting.prime
    bound, seed = findings.equations.degree_bound, setting.context.seed

    def make() -> _Certificate:
        return _Certificate(documents=closure_certificates(setting.model, equations, p, bound, seed=seed))

    return setting.attempt("a certificate", make, _Certificate)


# -- the answer ------------------------------------------------------------------------------------------------------


def answer(findings: Findings, *, method: str, equations: bool, options: Mapping[str, Any]) -> Closure:
    """Make the answer; without `equations` it has only a single short one."""
    certificate = _certificate(findings)
    findings = findings.after(certificate.stop, certificate.report)
    setting, size = findings.setting, findings.size
    model, image = setting.model, setting.image
    all_equations = written_equations(findings)
    curved = [f for f in all_equations if f.degree > 1]
    kept = equations or (len(curved) == 1 and len(curved[0].text()) <= _SHORT_EQUATION)
    series = _hilbert_series(findings)
    evidence = [*findings.report.evidence, *_dense_evidence(findings), *_series_evidence(findings)]
    setting.context.add_evidence(*evidence, *_codim_evidence(findings, evidence))
    return setting.context.build_result(
        Closure, model=model.spec, options=dict(options),
        certainty=Certainty.COMPUTED if findings.exact else Certainty.PROBABLE,
        limit=findings.limit, certificate=certificate.documents,
        ambient_dim=model.ambient_dim, coordinate_count=model.coordinate_count, coordinates=model.coordinate_description,
        span_dim=size.span.dim - image.homogenized, linear_forms=len(size.span.linear_forms),
        image_dim=findings.image_dim, codim=size.codim, degree=findings.degree,
        generator_counts=findings.equations.counts, hilbert_function=findings.equations.hilbert_function,
        hilbert_series=series, completeness=_completeness(findings), degree_bound=findings.equations.degree_bound,
        method=method, field="QQ" if findings.over_rationals else f"F_{setting.prime}", homogenized=image.homogenized,
        shown=findings.report.shown, not_shown=(*findings.report.not_shown, *_degree_bounds(findings)),
        equations=all_equations if kept else None, variables=_variables(setting) if kept else None,
    )  # fmt: skip


def _completeness(findings: Findings) -> Completeness:
    """Return the word of the record: equations up to a degree are ``partial`` if a limit ended the search for more."""
    if findings.complete:
        return "complete"
    return "partial" if findings.limit or findings.setting.context.limit else "up-to-degree"


def _degree_bounds(findings: Findings) -> Iterator[str]:
    """Name an upper bound of the degree, where the degree itself is not known."""
    bounds = [e.value for e in findings.report.evidence if (e.quantity, e.relation) == ("degree", "<=")]
    if findings.degree is None and bounds:
        yield f"the degree of the closure: it is at most {min(bounds)}, that of the equations' ideal"


def _variables(setting: Setting) -> tuple[str, ...]:
    """Return the names of the coordinates."""
    named = setting.image.source if setting.model.polynomial else setting.model
    return tuple(named.coordinate_names)[: setting.model.coordinate_count]


def _hilbert_series(findings: Findings) -> HilbertSeries | None:
    """Return the Hilbert series of the closure; None unless the equations are complete and Macaulay2 computed it."""
    series = findings.series
    if not findings.complete or series is None:
        return None
    return HilbertSeries(
        numerator=series.numerator,
        denominator_exponent=series.cone_dim - findings.setting.image.homogenized,
        certainty=Certainty.COMPUTED if findings.exact else Certainty.PROBABLE,
    )


def _series_evidence(findings: Findings) -> Iterator[Evidence]:
    """State the first coefficients of the Hilbert series, beside the ranks of monomials at points of the image."""
    series, ranks = findings.series, findings.equations.hilbert_function
    if findings.complete and series is not None and ranks:
        first = list(expanded(series.numerator, series.cone_dim, len(ranks) - 1))
        method = "Hilbert series of the equations' ideal"
        prime = series.prime or None
        yield findings.setting.statement("hilbert_function", first, "macaulay2", method, prime=prime)


def _dense_evidence(findings: Findings) -> Iterator[Evidence]:
    """State that an image whose rank is the number of coordinates is dense over QQ."""
    if not findings.size.dense:
        return
    exact = {"certainty": Certainty.COMPUTED, "prime": None, "field": "QQ"}
    state, bound = findings.setting.statement, {"relation": "<=", **exact}
    yield state("image_dim", findings.image_dim, "ambient", "number of coordinates", **bound)
    yield state("degree", 1, "ambient", "the closure is the whole space", **exact)


def _codim_evidence(findings: Findings, evidence: Sequence[Evidence]) -> Iterator[Evidence]:
    """State of the codimension in the span what is stated of the image's dimension."""
    turned: dict[Relation, Relation] = {"=": "=", ">=": "<=", "<=": ">="}
    span = findings.size.span.dim - findings.setting.image.homogenized
    for item in evidence:
        if item.quantity == "image_dim" and item.value is not None:
            relation = turned[item.relation]
            yield replace(item, quantity="codim", value=span - item.value, relation=relation)
