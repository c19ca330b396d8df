"""What `make test` contains of every question: known answers, and a damaged computation that is caught."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from m2bridge import questions
from tests.running import run_command

ROOT = Path(__file__).parents[2]

COVERAGE = {
    "boundary": (
        "with_m2/test_boundary.py::test_places",
        "with_m2/test_boundary.py::test_wrong_algebra_is_caught",
    ),
    "closure": (
        "with_m2/test_closure.py::test_known_varieties",
        "with_m2/test_closure.py::test_a_transposed_matrix_in_the_template_is_caught",
    ),
    "critical-points": (
        "with_m2/test_critical_points.py::test_known_counts",
        "with_m2/test_critical_points.py::test_lost_components_are_noticed",
    ),
    "dimension": (
        "with_m2/test_dimension_m2.py::test_macaulay2_agrees",
        "with_m2/test_dimension_m2.py::test_a_mistake_in_a_partial_is_a_conflict",
    ),
    "fiber": (
        "known_values/test_fiber.py::test_every_stratum_of_the_smallest_layer",
        "with_m2/test_fiber.py::test_a_dropped_equation_is_caught",
    ),
    "ideal": (
        "with_m2/test_ideal.py::test_two_quadrics_are_a_twisted_cubic_and_a_line",
        "with_m2/test_ideal.py::test_a_lost_generator_is_caught",
    ),
    "membership": (
        "with_m2/test_membership.py::test_known_answers",
        "with_m2/test_membership.py::test_a_wrong_point_of_the_fiber_is_a_contradiction",
    ),
    "same": (
        "unit/test_same.py::test_one_function_that_no_named_symmetry_explains",
        "unit/test_same.py::test_the_certificate_of_a_pair_is_checked",
    ),
    "singular-locus": (
        "with_m2/test_singular_every.py::test_textbook_answers",
        "with_m2/test_singular_locus.py::test_wrong_algebra_is_caught",
    ),
    "singular-point": (
        "with_m2/test_singular_point.py::test_textbook_points",
        "with_m2/test_singular_point.py::test_a_transposed_attention_matrix_is_caught",
    ),
    "identifiable": (
        "unit/test_identifiable.py::test_what_lightning_attention_determines",
        "unit/test_identifiable.py::test_a_missing_symmetry_leaves_it_undecided",
    ),
    "symmetries": (
        "unit/test_symmetries_fields.py::test_known_gauge_groups_are_found",
        "unit/test_symmetries_fields.py::test_a_wrong_symmetry_is_refused",
    ),
}
"""For each question a test of known answers and a test of a damaged computation."""

WITHOUT_MACAULAY2 = {"identifiable", "same", "symmetries"}
"""Questions that no template asks."""


def names() -> set[str]:
    """The questions of the package."""
    return set(questions.sentences())


def test_every_question_has_known_answers_and_a_damage() -> None:
    assert set(COVERAGE) == names()
    assert {name for name in names() if not questions.find(name).templates} == WITHOUT_MACAULAY2


def collected(tests: list[str], selected: str) -> set[str]:
    """Return those of `tests` of which pytest collects a case under the marks `selected`."""
    words = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "-m", selected]
    done = run_command([*words, *(f"tests/{test}" for test in tests)], cwd=ROOT)
    return {
        line.partition("[")[0].removeprefix("tests/") for line in done.stdout.splitlines() if "::" in line
    }


def test_make_test_runs_them() -> None:
    if not (ROOT / "Makefile").exists():
        pytest.skip("no Makefile: this is not a checkout")
    printed = run_command(["make", "-n", "test"], cwd=ROOT).stdout
    (selected,) = re.findall(r'pytest .*-m "([^"]+)"', printed)
    every = {test for pair in COVERAGE.values() for test in pair}
    assert collected(sorted(every), selected) == every
    with_macaulay2 = {
        test for name, pair in COVERAGE.items() if name not in WITHOUT_MACAULAY2 for test in pair
    }
    assert collected(sorted(every), f"macaulay2 and ({selected})") == with_macaulay2
