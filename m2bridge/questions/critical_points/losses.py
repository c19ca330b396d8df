"""Quadratic losses on the space of functions: a metric with a target, or the squared error of samples.

A loss of a function with coordinates y is sum_i d_i (E y - b)_i^2 with exact rational E, b and d. Outputs at given inputs are
linear in the coordinates, and E is found by exact linear algebra from a few random weights, for every polynomial network.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import factorial, isfinite, prod
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from m2bridge.errors import InputError
from m2bridge.exact_numbers import exact_number
from m2bridge.families import Model
from m2bridge.linear.modular import kernel_mod
from m2bridge.linear.primes import LARGE_PRIME, GivenNumbers
from m2bridge.programs.arithmetics import elementwise, object_array
from m2bridge.questions import over_q
from m2bridge.questions.point import residues

METRICS = ("generic", "bombieri", "euclidean")
_SPARE = 4  # points beyond the number of unknowns
_SMALL_ENTRY, _LARGE_ENTRY = 12, 15_000
"""Random integers up to these: small ones where the same numbers are used over QQ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """sum_i weights_i (matrix y - target)_i^2.

    Attributes
    ----------
    kind: ``generic``, ``bombieri``, ``euclidean`` or ``samples``.
    special: whether the user's own numbers are in it, so that its critical points may lie anywhere.
    general: whether metric and target are both drawn at random without a kernel: then the count is a generic ED degree.
    note: what a reader should know of the data.
    """

    kind: str
    matrix: np.ndarray
    target: np.ndarray
    weights: np.ndarray
    general: bool = False
    special: bool = False
    note: str = ""

    @property
    def numbers(self) -> GivenNumbers:
        """Denominators in the loss: a prime must not divide them."""
        arrays = (self.matrix, self.target, self.weights)
        return GivenNumbers(Fraction(1, Fraction(x).denominator) for array in arrays for x in array.ravel())

    @property
    def quadric(self) -> np.ndarray:
        """Return Q = E^T D E, exact."""
        return np.asarray(self.matrix.T @ (self.weights[:, None] * self.matrix))

    @property
    def covector(self) -> np.ndarray:
        """Return q = E^T D b, exact: the differential of half the loss is Q y - q."""
        return np.asarray(self.matrix.T @ (self.weights * self.target))

    def rank(self, p: int = LARGE_PRIME) -> int:
        """Return the rank of the quadric modulo p."""
        return len(kernel_mod(residues(self.quadric, p), p)[1])

    def modulo(self, p: int, *, residual: bool = True) -> dict[str, object]:
        """Values for the templates, over F_p; over QQ for p = 0; `residual` gives E and b too."""

        def form(array: np.ndarray) -> Any:
            return residues(array, p).tolist() if p else elementwise(Fraction, array).tolist()

        values = {"quadric": form(self.quadric), "covector": form(self.covector)}
        if residual:
            values |= {"residualMatrix": form(self.matrix), "residualTarget": form(self.target)}
        return values


# -- what the user asked for -----------------------------------------------------------------------------


@dataclass(frozen=True)
class GivenLoss:
    """What the user said of the loss; `small` asks for short numbers, for computations over QQ."""

    metric: str
    kernel: int
    data: Any
    samples: int | None
    noise: float
    target: Any
    small: bool

    def loss(self, model: Model, seed: int) -> Loss:
        if self.metric not in METRICS:
            raise InputError(f"--metric {self.metric!r} is not one of {', '.join(METRICS)}")
        named = ["--data"] * (self.data is not None) + ["--samples"] * (self.samples is not None)
        if len(named) == 2 or (
            named and (self.metric != "generic" or self.kernel or self.target is not None)
        ):
            raise InputError(
                f"give --metric (with --kernel), or --data, or --samples; not {' and '.join(named)} with another"
            )
        if self.data is not None:
            inputs, outputs = map(np.asarray, self.data)
            return sample_loss(model, inputs, outputs)
        if self.samples is not None:
            return drawn_samples(model, self.samples, self.noise, seed)
        return metric_loss(model, self.metric, self.kernel, seed, small=self.small, target=self.target)

    def options(self, loss: Loss) -> dict[str, Any]:
        """Return the options that determine the loss beside the seed; samples are represented by a hash."""
        if self.samples is not None:
            return {"samples": self.samples, "noise": self.noise}
        if self.data is not None:
            text = repr((loss.matrix.tolist(), loss.target.tolist()))
            return {"data": hashlib.sha256(text.encode()).hexdigest()[:16]}
        target = None if self.target is None else [str(x) for x in self.target]
        return {"metric": self.metric, "kernel": self.kernel, "target": target, "small": self.small}

    @property
    def description(self) -> str:
        """Return a description of the loss."""
        if self.data is not None:
            return "the squared error of the given samples"
        if self.samples is not None:
            return f"the squared error of {self.samples} random samples"
        kernel = f" with a kernel of dimension {self.kernel}" if self.kernel else ""
        words = (f"a random quadric{kernel}", "the Bombieri norm", "the sum of squares of the coordinates")
        chosen = words[METRICS.index(self.metric)]
        return f"{chosen}, {'random' if self.target is None else 'given'} target"


def read_target(text: str) -> tuple[Fraction, ...]:
    """Parse numbers separated by commas: 1/2,3,-0.25."""
    try:
        return tuple(exact_number(number.strip(), "--target") for number in text.split(","))
    except InputError:
        raise InputError(
            f"--target {text!r}: write numbers separated by commas, such as 1/2,3,-0.25"
        ) from None


def read_samples(text: str) -> tuple[np.ndarray, np.ndarray]:
    """Read two files, ``X.npz,Y.npz`` (or ``.npy``), or one ``.npz`` with arrays X and Y."""
    paths = [Path(name.strip()) for name in text.split(",")]
    files = [_arrays(path) for path in paths]
    if len(files) == 1 and {"X", "Y"} <= set(files[0]):
        return files[0]["X"], files[0]["Y"]
    if len(files) != 2:
        raise InputError(
            "--data needs two .npz or .npy files X.npz,Y.npz, or one .npz file with arrays X and Y"
        )
    samples = []
    for path, name, arrays in zip(paths, "XY", files, strict=True):
        if name not in arrays and len(arrays) != 1:
            raise InputError(f"{path} holds {', '.join(arrays)}; name the array {name}")
        samples.append(arrays[name] if name in arrays else next(iter(arrays.values())))
    return samples[0], samples[1]


def _arrays(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of a file by their names; that of an ``.npy`` has none."""
    try:
        loaded = np.load(path, allow_pickle=False)
        return {"": loaded} if isinstance(loaded, np.ndarray) else {n: loaded[n] for n in loaded.files}
    except (OSError, ValueError, EOFError, BadZipFile, zlib.error) as error:
        raise InputError(f"--data: {path} cannot be read: {error}") from None


# -- metrics ---------------------------------------------------------------------------------------------


def _integers(rng: np.random.Generator, shape: tuple[int, ...], size: int) -> np.ndarray:
    return elementwise(int, rng.integers(-size, size + 1, size=shape))


def _identity(count: int) -> np.ndarray:
    return np.eye(count, dtype=int).astype(object)


def _ones(count: int) -> np.ndarray:
    return object_array([1] * count, (count,))


def metric_loss(
    model: Model, metric: str, kernel: int, seed: int, *, small: bool, target: Sequence[Any] | None = None
) -> Loss:
    """Return a metric with a target, by default random; `kernel` is the dimension of the kernel of a random quadric."""
    count = model.coordinate_count
    rng = np.random.default_rng([seed, 31])
    size = _SMALL_ENTRY if small else _LARGE_ENTRY
    if target is not None and len(target) != count:
        raise InputError(f"--target has {len(target)} numbers; functions of {model} have {count} coordinates")
    if kernel and metric != "generic":
        raise InputError("--kernel is for --metric generic")
    if not 0 <= kernel < count:
        raise InputError(
            f"--kernel {kernel}: a quadric on {count} coordinates has a kernel of dimension 0 to {count - 1}"
        )
    if metric == "generic":
        matrix = _integers(rng, (count - kernel, count), size)
        if small:  # near the identity: short numbers over QQ
            few = np.where(rng.random(matrix.shape) < 0.7, 0, matrix)
            matrix = few + _identity(count)[: len(matrix)]
        weights = _ones(len(matrix))
    else:
        matrix, weights = _bombieri(model) if metric == "bombieri" else (_identity(count), _ones(count))
    if target is not None:
        right = matrix @ object_array([Fraction(x) for x in target], (count,))
    elif metric == "generic":
        right = _integers(rng, (len(matrix),), size)
    else:
        right = matrix @ _integers(rng, (count,), size)
    general, special = metric == "generic" and kernel == 0 and target is None, target is not None
    return Loss(kind=metric, matrix=matrix, target=right, weights=weights, general=general, special=special)


def _bombieri(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Return the norm that rotations of the inputs preserve: squares of coefficients, divided by multinomial coefficients."""
    full = model.with_all_coefficients
    if full.input_shape is None:
        raise InputError(
            f"--metric bombieri needs the monomials of a network's inputs, and {model} is given by its coordinates; "
            "use --metric euclidean or generic"
        )
    multinomials = [
        Fraction(prod(factorial(int(e)) for e in row), factorial(int(row.sum()))) for row in full.monomials
    ]
    weights = multinomials * full.program.output_count
    same = full is model
    matrix = _identity(full.coordinate_count) if same else linear_in_coordinates(model, full.coordinates)
    return matrix, object_array(weights, (len(weights),))


# -- samples ---------------------------------------------------------------------------------------------


def linear_in_coordinates(model: Model, values: Any) -> np.ndarray:
    """Return the matrix E with values(w) = E coordinates(w) for all weights w, exact; checked at spare random weights."""
    rng = np.random.default_rng(77)
    count = model.coordinate_count
    draws = [
        {name: _integers(rng, shape, 5) for name, shape in model.parameters.items()}
        for _ in range(count + _SPARE)
    ]
    points = np.stack([np.asarray(model.coordinates(w), dtype=object).ravel() for w in draws])
    wanted = np.stack([np.asarray(values(w), dtype=object).ravel() for w in draws])
    table = residues(points, LARGE_PRIME)
    columns = list(kernel_mod(table, LARGE_PRIME)[1])
    rows = list(kernel_mod(table[:, columns].T, LARGE_PRIME)[1])
    matrix = np.zeros((wanted.shape[1], count), dtype=int).astype(object)
    solved = over_q.solve(points[np.ix_(rows, columns)], wanted[rows])
    if solved is not None and columns:
        matrix[:, columns] = solved.T
    if np.any(points @ matrix.T != wanted):
        raise InputError(f"{model}: outputs are not linear in its coordinates")
    return matrix


def sample_loss(model: Model, inputs: np.ndarray, outputs: np.ndarray, note: str = "") -> Loss:
    """Return the squared error of samples, summed; numbers are taken exactly."""
    if model.input_shape is None or model.output_shape is None:
        raise InputError(f"{model} is given by its coordinates and has no inputs: use --metric")
    for name, array, shape in (("X", inputs, model.input_shape), ("Y", outputs, model.output_shape)):
        if tuple(array.shape[1:]) != tuple(shape):
            raise InputError(
                f"{name} has shape {array.shape}; one sample of {model} has shape {tuple(shape)}"
            )
    if len(inputs) != len(outputs) or not len(inputs):
        raise InputError(
            f"there are {len(inputs)} inputs and {len(outputs)} outputs; their numbers must be equal and positive"
        )
    try:
        exact_inputs, wanted = (elementwise(Fraction, np.asarray(a, dtype=object)) for a in (inputs, outputs))
    except (TypeError, ValueError, OverflowError):
        raise InputError("X and Y must contain finite real numbers") from None
    blocks = [linear_in_coordinates(model, lambda w, x=x: model.forward(w, x)) for x in exact_inputs]
    matrix, target = np.concatenate(blocks), wanted.reshape(-1)
    ones = _ones(len(matrix))
    return Loss(kind="samples", matrix=matrix, target=target, weights=ones, special=True, note=note)


def drawn_samples(model: Model, samples: int, noise: float, seed: int) -> Loss:
    """Random inputs, the outputs of a random teacher of the same kind, and uniform noise; small rational numbers."""
    if model.input_shape is None:
        raise InputError(f"{model} is given by its coordinates and has no inputs: use --metric")
    if not isfinite(noise):
        raise InputError(f"--noise {noise}: a finite number is needed")
    rng = np.random.default_rng([seed, 32])
    inputs = _integers(rng, (samples, *model.input_shape), 6)
    teacher = {name: _integers(rng, shape, 3) for name, shape in model.parameters.items()}
    errors = _integers(rng, (samples, *(model.output_shape or ())), 100)
    scale = Fraction(noise).limit_denominator(1000) / 100
    outputs = np.stack([np.asarray(model.forward(teacher, x), dtype=object) for x in inputs]) + scale * errors
    note = "the targets are outputs of a network of this kind, without noise" if scale == 0 else ""
    return sample_loss(model, inputs, outputs, note)
