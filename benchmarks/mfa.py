"""Dimensions of a published table of polynomial perceptrons: how many are met, how many are proved, and what each row costs.

    python benchmarks/mfa.py --csv 2_1_architectures.csv --csv 2_2_architectures.csv [--rows 1000] [--theirs 20]

The table is that of the public repository daokevin06/MFA_PNNs (``data/raw``): columns architecture, exponent, num_parameters and
dimension_computed. Rows with at most 400 weights are drawn at random. For a few of them the method of that repository
(backpropagation at random points over two primes, coefficients by a pseudo-inverse, rank; after Kubjas, Li and Wiesmann) is run
beside ours in the same process, written here once more with FLINT in the place of Sage. Rows that stay intervals are listed with
their bounds.
"""

from __future__ import annotations

import argparse
import ast
import csv
import random
import time
from collections import Counter
from itertools import combinations_with_replacement, pairwise
from math import prod
from pathlib import Path

import flint
import numpy as np
from measuring import upper_bound_of

from m2bridge import dimension
from m2bridge.families import MLP

THEIR_PRIMES = (100003, 100153)
NEEDED = {(5, 5, 3, 1): 32, (3, 5, 6, 4, 3, 1): 58, (4, 5, 5, 3, 1): 47, (5, 4, 3, 1): 25}
"""Upper bounds (r = 2) that the completeness argument of that repository takes from computations over finite fields."""


def rows_of(paths: list[Path], most: int) -> list[tuple[tuple[int, ...], int, int]]:
    """(widths, r, dimension) of all rows with at most `most` weights."""
    found = {}
    for path in paths:
        with path.open(encoding="utf-8", newline="") as stream:
            for row in csv.DictReader(stream):
                widths = tuple(int(n) for n in ast.literal_eval(row["architecture"]))
                if int(row["num_parameters"]) <= most:
                    found[widths, int(row["exponent"])] = int(row["dimension_computed"])
    return sorted((widths, r, d) for (widths, r), d in found.items())


def their_dimension(widths: tuple[int, ...], r: int) -> int:
    """The rank of the coefficients' Jacobian at random weights, over both primes; an error when they differ."""
    degree = r ** (len(widths) - 2)
    monomials = list(combinations_with_replacement(range(widths[0]), degree))
    ranks = []
    for p in THEIR_PRIMES:
        rng = np.random.default_rng(p)
        weights = [rng.integers(0, p, size=(n, m)) for m, n in pairwise(widths)]
        points = rng.integers(0, p, size=(2 * len(monomials), widths[0]))
        table = [[prod(int(x[i]) for i in m) % p for m in monomials] for x in points]
        values = flint.nmod_mat(len(points), len(monomials), [v for row in table for v in row], p)
        transposed = values.transpose()
        inverse = (transposed * values).inv() * transposed
        blocks = []
        for output in range(widths[-1]):
            gradients = [_gradient(weights, x, output, r, p) for x in points]
            matrix = flint.nmod_mat(len(points), len(gradients[0]), [v for row in gradients for v in row], p)
            blocks += (inverse * matrix).tolist()
        ranks.append(flint.nmod_mat([[int(v) for v in row] for row in blocks], p).rank())
    if len(set(ranks)) > 1:
        raise ArithmeticError(f"different ranks over two primes: {ranks}")
    return int(ranks[0])


def _gradient(weights: list[np.ndarray], x: np.ndarray, output: int, r: int, p: int) -> list[int]:
    """The gradient of one output by all weights, by backpropagation."""
    activations, sums = [x], []
    for w in weights:
        sums.append(w @ activations[-1] % p)
        power = sums[-1]
        for _ in range(r - 1):
            power = power * sums[-1] % p
        activations.append(power)
    delta = np.zeros(len(sums[-1]), dtype=np.int64)
    delta[output] = 1
    parts = [np.outer(delta, activations[-2]) % p]
    for k in range(len(weights) - 2, -1, -1):
        slope = np.full(len(sums[k]), r, dtype=np.int64)
        for _ in range(r - 1):
            slope = slope * sums[k] % p
        delta = weights[k + 1].T @ delta % p * slope % p
        parts.append(np.outer(delta, activations[k]) % p)
    return [int(v) for part in reversed(parts) for v in part.reshape(-1)]


def main() -> None:  # noqa: PLR0915 -- one script from top to bottom
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument(
        "--csv", action="append", required=True, type=Path, help="a table; may be repeated"
    )
    arguments.add_argument("--rows", type=int, default=1000)
    arguments.add_argument(
        "--skip", type=int, default=0, help="leave out so many of the drawn rows: to run in pieces"
    )
    arguments.add_argument("--most", type=int, default=400, help="largest number of weights")
    arguments.add_argument("--theirs", type=int, default=20, help="rows on which their method is run too")
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument(
        "--seconds", type=float, default=float("inf"), help="stop drawing rows after this time"
    )
    given = arguments.parse_args()
    table = rows_of(given.csv, given.most)
    random.seed(given.seed)
    chosen = random.sample(table, len(table))[given.skip : given.skip + given.rows]
    print(
        f"{len(table)} rows with at most {given.most} weights, "
        f"{len(chosen)} of them at random (seed {given.seed}, from {given.skip})"
    )
    verdicts: Counter[str] = Counter()
    grounds: Counter[str] = Counter()
    times, pairs = [], []
    begin = time.perf_counter()
    for widths, r, known in chosen:
        if time.perf_counter() - begin > given.seconds:
            break
        start = time.perf_counter()
        found = dimension(MLP(widths=widths, r=r), engine=False)
        times.append(time.perf_counter() - start)
        verdicts["mismatch" if found.image_dim != known else found.certainty.value] += 1
        best = upper_bound_of(found.evidence)
        grounds[best.witness if found.certainty.value == "proved" else "open"] += 1
        if found.image_dim != known or found.certainty.value != "proved":
            said = f"{found.lower_bound}..{found.upper_bound}, table {known}: {best.witness}, {best.method}"
            print(f"  {list(widths)} r={r}: {said}", flush=True)
        if len(pairs) < given.theirs:
            start = time.perf_counter()
            if their_dimension(widths, r) != known:
                print(f"  their method differs on {list(widths)}")
            pairs.append((times[-1], time.perf_counter() - start))
    total = len(times)
    print(
        f"rows {total}, mismatches {verdicts['mismatch']}, proved {verdicts['proved']} ({verdicts['proved'] / total:.1%})"
    )
    print(f"upper bounds by: {dict(grounds)}")
    print(
        f"seconds a row: mean {np.mean(times):.2f}, median {np.median(times):.2f}, largest {max(times):.2f}"
    )
    if pairs:
        ours, theirs = np.array(pairs).T
        print(
            f"on {len(pairs)} rows: ours {ours.mean():.2f} s with proof, their method (FLINT) {theirs.mean():.2f} s without"
        )
    for widths, bound in NEEDED.items():
        found = dimension(MLP(widths=widths, r=2), engine=False)
        print(f"D{widths} <= {found.upper_bound} ({found.certainty.value}), needed {bound}")


if __name__ == "__main__":
    main()
