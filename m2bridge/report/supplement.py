"""Write an answer as a short Macaulay2 script for the supplement of a paper.

The script contains the map, the ideal and what is claimed about them as ``assert``s, and nothing that belongs to m2bridge. It
runs as it stands with ``M2 --script``. Comments state what it does not assert.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Sequence
from fractions import Fraction
from math import comb
from typing import Any

import numpy as np

from m2bridge._version import __version__
from m2bridge.errors import InputError
from m2bridge.families import Model, parse_spec
from m2bridge.families.symbolic import symbolic_map
from m2bridge.frontends.polynomials import parse_polynomial, polynomial_text
from m2bridge.limits import Limits
from m2bridge.questions.closure import Closure, closure, equation
from m2bridge.questions.critical_points import CriticalPoints
from m2bridge.questions.critical_points.losses import metric_loss
from m2bridge.questions.dimension import Dimension
from m2bridge.questions.fiber import Fiber
from m2bridge.questions.membership import ImageMembership
from m2bridge.questions.membership.points import AlgebraicPoint
from m2bridge.questions.singular_locus import SingularLocus
from m2bridge.results import Result

_LINE_LENGTH = 116  # columns
_LONGEST_SUPPLEMENT = 40_000  # characters of a script that a person reads
_LARGEST_JACOBIAN = 4000  # entries that are differentiated symbolically
_MOST_WRITTEN_MINORS = 300  # minors that a script forms
_KERNEL_COORDINATES, _KERNEL_WEIGHTS = 6, 10
"""Up to these sizes the kernel of the map takes about a second, and the script compares it with the equations."""


def supplement(result: Result, limits: Limits | None = None) -> str:
    """Return the script for an answer. Raises InputError if its kind or its size is not supported.

    `limits` hold for the equations of the closure, which are computed if the script for critical points needs them.
    """
    writer = WRITERS.get(type(result))
    if writer is None:
        raise InputError(f"--supplement is not available for {result.ANALYSIS}")
    heading = [
        f"{result.ANALYSIS} of {result.model}: {result.view().answer}",
        f"Computed by m2bridge {__version__} ({result.sure}), seed {result.seed}. Run it with: M2 --script FILE",
        "Every statement that is checked here is an assert; the script ends with the word complete.",
    ]
    script = _Script()
    script.comment(*heading)
    if isinstance(result, CriticalPoints):
        _critical_points(script, result, limits)
    else:
        writer(script, result)
    script.add('print "complete";')
    text = "\n".join(script.lines) + "\n"
    if len(text) > _LONGEST_SUPPLEMENT:
        raise InputError(
            f"--supplement: the script has {len(text):,} characters, too many to be read; --script prints what was run"
        )
    return text


def _map_of(spec: str, *, same_image: bool = False) -> Model:
    """Return a model whose map can be written; `same_image` allows one with the same image and fewer weights."""
    model = parse_spec(spec)
    if same_image:
        model = model.leanest
    if model.free is not model and model.free != model:
        raise InputError(
            f"--supplement: the weights of {model} have bounded ranks; use another parametrization"
        )
    if not model.polynomial:
        raise InputError("--supplement is for polynomial maps")
    if model.parameter_count * model.coordinate_count > _LARGEST_JACOBIAN:
        size = f"{model.parameter_count} weights and {model.coordinate_count} coordinates"
        raise InputError(f"--supplement: a map with {size} is too large to be written out")
    return model


def _point(phi: Model, seed: int) -> np.ndarray:
    """Draw a point of the weights."""
    return np.random.default_rng([seed, 43]).integers(-40, 41, phi.parameter_count)


# -- texts ---------------------------------------------------------------------------------------------------------------------


class _Script:
    """A Macaulay2 script under construction; long comments and statements are broken at spaces."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def comment(self, *sentences: str) -> None:
        for sentence in sentences:
            wrapped = textwrap.wrap(sentence, _LINE_LENGTH, break_long_words=False)
            self.lines += [f"-- {line}" for line in wrapped]

    def add(self, *statements: str) -> None:
        for text in statements:
            self.lines += textwrap.wrap(
                text, _LINE_LENGTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
            )

    def add_ideal(self, name: str, ring: str, polynomials: Sequence[str]) -> None:
        texts = [_spaced(_indexed(f)) for f in polynomials] or [f"0_{ring}"]
        self.add(f"{name} = ideal({', '.join(texts)});")

    def add_map(self, phi: Model, field: str) -> None:
        """Write the ring R of the weights and the matrix f of the coordinates."""
        names, start = [], 0
        for name, shape in phi.parameters.items():
            size = int(np.prod(shape, dtype=int))
            sizes = " x ".join(map(str, shape)) or "one number"
            names.append(f"{name} ({sizes}) is w_{start}..w_{start + size - 1}")
            start += size
        weights = [f"w_{i}" for i in range(start)]
        texts = [_spaced(polynomial_text(f, weights)) for f in symbolic_map(phi)]
        self.comment(f"The map. Weights, row by row: {'; '.join(names)}.")
        self.add(f"R = {field}[w_0..w_{start - 1}];", f"f = matrix {{{{{', '.join(texts)}}}}};")

    def add_closure(self, phi: Model, equations: Sequence[str], field: str) -> None:
        """Write the ring S of the coordinates and the ideal I, which vanishes on the image."""
        self.add(f"S = {field}[z_0..z_{phi.coordinate_count - 1}];")
        self.comment("Equations that vanish on the image.")
        self.add_ideal("I", "S", equations)
        self.add("phi = map(R, S, f);", "assert(phi I == 0);")

    def add_whole_ideal(self, phi: Model, reasons: str = "") -> None:
        """Compare the ideal I with the kernel of phi if that is small."""
        if phi.coordinate_count <= _KERNEL_COORDINATES and phi.parameter_count <= _KERNEL_WEIGHTS:
            self.comment("The ideal is the kernel of the map of rings.")
            self.add("assert(I == ker phi);")
        else:
            self.comment(f"Not checked here: that I is the whole ideal of the image.{reasons}")

    def add_rank(self, point: np.ndarray, dimension: int) -> None:
        self.comment("The rank of the Jacobian at one point is a lower bound of the dimension of the image.")
        self.add(f"atPoint = map(coefficientRing R, R, {{{_list(point.tolist())}}});")
        self.add(f"assert(rank atPoint jacobian f == {dimension});")


def _spaced(polynomial: str) -> str:
    """Put spaces around the signs between terms, where lines may be broken."""
    return re.sub(r"(?<=[^\s(,])\s*([+-])\s*", r" \1 ", polynomial)


def _indexed(polynomial: str) -> str:
    """Write the variable z12 as z_12."""
    return re.sub(r"([a-z])(\d+)", r"\1_\2", polynomial)


def _field(p: int | None) -> str:
    return f"ZZ/{p}" if p else "QQ"


def _list(values: Sequence[Any]) -> str:
    return ", ".join(str(value) for value in values)


# -- the questions -------------------------------------------------------------------------------------------------------------


def _dimension(script: _Script, result: Dimension) -> None:
    phi = _map_of(result.model)
    script.add_map(phi, "QQ")
    script.add_rank(_point(phi, result.seed), result.lower_bound)
    size = result.upper_bound + 1
    minors = comb(phi.parameter_count, size) * comb(phi.coordinate_count, size)
    if minors == 0:
        script.comment("The Jacobian has no larger minors.")
    elif minors <= _MOST_WRITTEN_MINORS:
        script.comment(f"The rank is nowhere larger: all minors of size {size} are zero.")
        script.add(f"assert(minors({size}, jacobian f) == 0);")
    else:
        bound = f"that the dimension is at most {result.upper_bound}"
        script.comment(f"Not checked here: {bound}. {result.statement}")


def _closure(script: _Script, result: Closure) -> None:
    phi = _map_of(result.model, same_image=True)
    field = _field(result.characteristic)
    script.add_map(phi, field)
    script.add_closure(phi, [f.text() for f in result.known_equations], field)
    if result.image_dim is not None:
        script.add_rank(_point(phi, result.seed), result.image_dim)
    if result.completeness != "complete":
        degree = result.degree_bound
        script.comment(f"Not claimed: that there are no further equations, of degree above {degree}.")
        return
    script.comment("The dimension (affine) and the degree of the closure.")
    script.add(f"assert(dim I == {result.image_dim});")
    if result.degree is not None:
        script.add(f"assert(degree I == {result.degree});")
    script.add_whole_ideal(phi, f" Reasons: {'; '.join(result.shown)}.")


def _fiber(script: _Script, result: Fiber) -> None:
    if result.fiber_dim is None:
        raise InputError("--supplement: the fiber itself was not computed")
    phi = _map_of(result.model)
    weights = [x for array in result.at["weights"].values() for x in np.array(array, dtype=object).ravel()]
    script.add_map(phi, _field(result.at["prime"]))
    script.comment("The fiber through one point of the weights.")
    script.add(f"atPoint = map(coefficientRing R, R, {{{_list(weights)}}});")
    script.add("fiber = ideal(f - promote(atPoint f, R));", f"assert(dim fiber == {result.fiber_dim});")
    if result.method != "plain":
        script.comment(f"Not checked here: {result.explanation}.")
        return
    if result.degree is not None:
        script.add(f"assert(degree fiber == {result.degree});")
    if result.components is not None:
        sizes = sorted([c.dim, c.degree] for c in result.components)
        shown = ", ".join(f"{{{dim}, {degree}}}" for dim, degree in sizes)
        script.comment("Its components: dimension and degree of each.")
        script.add(f"assert(sort apply(minimalPrimes fiber, P -> {{dim P, degree P}}) == {{{shown}}});")
    script.comment(f"Not checked here: the verdict {result.verdict}; {result.explanation}.")


def _singular_locus(script: _Script, result: SingularLocus) -> None:
    if not result.equations or result.completeness != "complete":
        raise InputError(
            "--supplement: the record of this singular locus has no complete ideal of the closure"
        )
    phi = _map_of(result.model)
    field = _field(None if _vanish(phi, result.equations, result.seed) else int(str(result.options["prime"])))
    codim = phi.coordinate_count - result.image_dim
    script.add_map(phi, field)
    script.add_closure(phi, result.equations, field)
    script.add(f"assert(dim I == {result.image_dim});")
    script.add_whole_ideal(phi)
    _singular_components(script, result, phi, codim)
    script.comment(
        "Single points: they are singular exactly when the rank of the Jacobian of I is too small."
    )
    script.add(
        "rankAt = weights -> rank (map(coefficientRing S, S, (map(coefficientRing R, R, weights)) f)) jacobian I;"
    )
    for stratum in result.strata:
        relation = {"singular": "<", "smooth": "=="}.get(stratum.verdict)
        if relation is not None and stratum.representative is not None:
            weights = [x for entries in stratum.representative.values() for x in entries]
            assertion = f"assert(rankAt {{{_list(weights)}}} {relation} {codim});"
            script.comment(f"{stratum.in_words}: {stratum.verdict}.")
            script.add(assertion)


def _singular_components(script: _Script, result: SingularLocus, phi: Model, codim: int) -> None:
    """Write the singular locus as the union of its components, compared with the Jacobian criterion if that is small."""
    components = result.components or ()
    if result.singular_dim is None or not components or any(c.equations is None for c in components):
        return
    script.comment("The components of the singular locus.")
    for number, component in enumerate(components, start=1):
        name = f"P{number}"
        script.add_ideal(name, "S", component.equations or ())
        if component.degree is not None:
            script.add(f"assert(dim {name} == {component.dim} and degree {name} == {component.degree});")
    minors = comb(phi.coordinate_count, codim) * comb(len(result.equations), codim)
    if minors <= _MOST_WRITTEN_MINORS:
        names = ", ".join(f"P{number + 1}" for number in range(len(components)))
        script.comment("The Jacobian criterion gives the same set.")
        script.add(f"assert(radical(I + minors({codim}, jacobian I)) == intersect({{{names}}}));")
    else:
        script.comment("Not checked here: that there are no further singular points.")


def _vanish(phi: Model, equations: Sequence[str], seed: int) -> bool:
    """Return whether equations vanish at a random point of the image over QQ."""
    weights = phi.unflatten(_point(phi, seed).astype(object))
    image = np.asarray(phi.coordinates(weights)).ravel().tolist()
    names = [f"z{i}" for i in range(phi.coordinate_count)]
    polynomials = (parse_polynomial(text, names) for text in equations)
    return all(equation(f, range(phi.coordinate_count)).at(image) == 0 for f in polynomials)


def _membership(script: _Script, result: ImageMembership) -> None:
    phi = _map_of(result.parametrization)
    script.add_map(phi, "QQ")
    script.add(f"point = matrix {{{{{_list(result.point)}}}}} ** QQ;")
    weights = None if result.weights is None else [x for xs in result.weights.values() for x in xs]
    if weights is not None and all(isinstance(x, str | int | Fraction) for x in weights):
        script.comment("The point is in the real image: these weights are mapped to it.")
        script.add(f"assert((map(QQ, R, {{{_list(weights)}}})) f == point);")
    elif result.algebraic is not None:
        _algebraic_weights(script, result.algebraic, real=bool(result.real_image))
        if result.real_image is not True:
            script.comment(f"Not checked here: the real image. {'; '.join(result.reasons)}.")
    elif result.complex_image:
        script.comment("The point is in the complex image: the equations of the weights have a solution.")
        script.add("assert(ideal(f - promote(point, R)) != 1);")
        script.comment(f"Not checked here: the real image. {'; '.join(result.reasons)}.")
    elif result.complex_image is False:
        script.comment(
            "The point is not in the complex image: the equations of the weights have no solution."
        )
        script.add("assert(ideal(f - promote(point, R)) == 1);")
    if result.failing_equation is not None:
        text, value = result.failing_equation
        script.comment("The point is not in the closure: an equation of the image does not vanish at it.")
        script.add(f"S = QQ[z_0..z_{phi.coordinate_count - 1}];", f"equation = {_spaced(_indexed(text))};")
        script.add("assert((map(R, S, f)) equation == 0);")
        script.add(f"assert((map(QQ, S, point)) equation == {value});")


def _algebraic_weights(script: _Script, weights: AlgebraicPoint, *, real: bool) -> None:
    """Substitute weights over the number field QQ[u]/(m); for real ones show that m has a real root."""
    modulus, *elements = (
        _spaced(polynomial_text({(k,): Fraction(c) for k, c in reversed(list(enumerate(coefficients))) if Fraction(c)}, ["u"]))
        for coefficients in (weights.modulus, *weights.variables)
    )  # fmt: skip
    image = "real" if real else "complex"
    script.comment(f"The point is in the {image} image: these weights in QQ[u]/(m) are mapped to it.")
    script.add("A = QQ[u];", f"m = {modulus};", "K = A/m;")
    script.add(f"assert((map(K, R, {{{', '.join(elements)}}})) f - promote(point, K) == 0);")
    if real:
        low, high = weights.sign_change()
        script.comment("The polynomial m has a real root: it changes its sign.")
        script.add("valueAt = x -> (map(QQ, A, {x})) m;", f"assert(valueAt({low}) * valueAt({high}) < 0);")


def _critical_points(script: _Script, result: CriticalPoints, limits: Limits | None = None) -> None:
    options = result.options
    if "metric" not in options or result.regular is None:
        raise InputError("--supplement: only for finitely many critical points of a loss given by --metric")
    phi = _map_of(result.model, same_image=True)
    p = int(str(options["prime"]))
    ideal = closure(phi, prime=p, equations=True, seed=result.seed, limits=limits)
    if ideal.completeness != "complete":
        raise InputError("--supplement: the ideal of the closure was not computed completely")
    target: Any = options["target"]
    loss = metric_loss(
        phi, str(options["metric"]), int(str(options["kernel"])), result.seed, small=bool(options["small"]),
        target=None if target is None else [Fraction(x) for x in target],
    )  # fmt: skip
    values = loss.modulo(p, residual=False)
    rows = ", ".join(f"{{{_list(row)}}}" for row in values["quadric"])  # type: ignore[attr-defined]
    field = _field(p)
    codim = phi.coordinate_count - result.image_dim
    script.add_map(phi, field)
    script.add_closure(phi, [f.text() for f in ideal.known_equations], field)
    script.add_whole_ideal(phi)
    script.comment(
        "The loss is (z - u)^T Q (z - u) with q = Q*u. A smooth point z of the variety is critical when its gradient "
        "Q*z - q lies in the row space of the Jacobian of I."
    )
    script.add(f"Q = matrix {{{rows}}} ** S;")
    script.add(f"q = transpose matrix {{{{{_list(values['covector'])}}}}} ** S;")  # type: ignore[arg-type]
    script.add(
        "gradient = Q * transpose vars S - q;",
        f"critical = I + minors({codim + 1}, gradient | jacobian I);",
        f"regular = saturate(critical, minors({codim}, jacobian I));",
        f"assert(dim regular == {0 if result.regular else -1} and degree regular == {result.regular});",
    )


WRITERS: dict[type, Callable[[_Script, Any], None]] = {
    Dimension: _dimension,
    Closure: _closure,
    Fiber: _fiber,
    SingularLocus: _singular_locus,
    ImageMembership: _membership,
    CriticalPoints: _critical_points,
}
"""For each type of answer the function that writes its statements."""
