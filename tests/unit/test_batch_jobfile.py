"""Job files: their jobs, errors with the path of their key, and rejection of hostile files before they are expanded."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import pytest

from m2bridge.batch import jobfile, registry
from m2bridge.batch.grid import Grid, axis_of
from m2bridge.batch.plan import Plan, expand
from m2bridge.errors import InputError, OutOfReachError, ParseError
from m2bridge.families.catalogue import FAMILIES, Family
from m2bridge.families.spec import read

EXAMPLE = """\
[[grid]]
analysis = "dimension"
model = "lightning"
d = [2, 3]
dp = [1, 2]
a = "1..d"
t = 2
when = "a <= d"
"""


def plan_of(text: str, name: str = "jobs.toml", **options: int) -> Plan:
    return expand(jobfile.parse(text, Path(name)), **options)  # type: ignore[arg-type]


def test_a_job_file_is_not_changed_by_its_expansion() -> None:
    file = jobfile.parse(EXAMPLE, Path("jobs.toml"))
    with pytest.raises(ParseError):
        expand(file, most_jobs=1)
    assert not file.mistakes.entries
    assert expand(file).jobs


def mistakes_of(text: str, name: str = "jobs.toml") -> list[tuple[str, str]]:
    with pytest.raises(ParseError) as caught:
        plan_of(text, name)
    return [(m.path, m.message) for m in caught.value.mistakes]


def test_the_example_of_the_documentation() -> None:
    plan = plan_of(EXAMPLE)
    assert [job.spec for job in plan.jobs] == [
        f"lightning(d={d},dp={dp},a={a},t=2)" for d in (2, 3) for dp in (1, 2) for a in range(1, d + 1)
    ]
    assert plan.duplicates == 0


def test_json_and_toml_give_the_same_plan() -> None:
    grid = {"analysis": "dimension", "model": "lightning", "d": [2, 3], "dp": [1, 2], "a": "1..d", "t": 2}
    text = json.dumps({"grid": [{**grid, "when": "a <= d"}]})
    assert plan_of(text, "jobs.json") == plan_of(EXAMPLE)


def test_widths_are_lists_of_lists() -> None:
    plan = plan_of('[[grid]]\nanalysis="dimension"\nmodel="deep-lightning"\nd=[[3,3,3],[4,4,4]]\na=2\nt=3\n')
    assert [job.spec.split("a=")[0] for job in plan.jobs] == [
        "deep-lightning(d=[3,3,3],",
        "deep-lightning(d=[4,4,4],",
    ]


def test_sweeps_of_analyses_primes_and_seeds() -> None:
    plan = plan_of(
        '[defaults]\nseed = "0..2"\n[[grid]]\nanalysis=["dimension","closure"]\nmodel="lightning"\nd=2\ndp=1\n'
        "prime=[32003,31991]\n"
    )
    assert len(plan.jobs) == 2 * 2 * 3
    assert {job.parameters["seed"] for job in plan.jobs} == {0, 1, 2}


def test_duplicates_are_merged() -> None:
    one = '[[job]]\nanalysis="dimension"\nspec="lightning(d=2,dp=1)"\n'
    other = '[[job]]\nanalysis="dimension"\nspec="lightning:d=2,dp=1,a=2"\nseed=0\ntimeout="1h"\ntags=["x"]\npriority=3\n'
    plan = plan_of(one + other)
    assert plan.duplicates == 1
    (job,) = plan.jobs
    assert (job.limits.wall_seconds, job.tags, job.priority) == (3600.0, ("x",), 3)


def test_the_key_depends_on_what_determines_the_answer() -> None:
    base = '[[job]]\nanalysis="dimension"\nspec="lightning(d=2,dp=1)"\n'
    (job,) = plan_of(base).jobs
    key = job.key("1.21")
    assert len(key) == 64
    for same in ('timeout="1s"\n', 'memory="1G"\n', 'tags=["x"]\n', "priority=1\n", "seed=0\n"):
        assert plan_of(base + same).jobs[0].key("1.21") == key
    for other in ("seed=1\n", "prime=31991\n"):
        assert plan_of(base + other).jobs[0].key("1.21") != key
    assert job.key("1.26") != key


@pytest.mark.parametrize(("analysis", "same"), [("critical-points", False), ("dimension", True)])
def test_the_version_of_msolve_is_part_of_the_key_where_it_is_used(
    analysis: str, same: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    (job,) = plan_of(f'[[job]]\nanalysis="{analysis}"\nspec="lightning(d=2,dp=1)"\n').jobs
    keys, digests = set(), set()
    for version in ("", "0.9.0", "0.10.1"):
        monkeypatch.setattr(registry, "msolve_version", lambda version=version: version)
        registry.versions.cache_clear()
        keys.add(job.key("1.21"))
        digests.add(registry.digest())
    registry.versions.cache_clear()
    assert len(keys) == (1 if same else 3)
    assert len(digests) == 3  # a worker with another msolve is not used


@pytest.mark.parametrize("changed", ["singular_strata.m2.j2", "Neuromanifolds/images.m2"])
def test_a_changed_template_changes_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    (job,) = plan_of('[[job]]\nanalysis="singular-locus"\nspec="lightning(d=2,dp=1)"\n').jobs
    shutil.copytree(registry.template_directory(), tmp_path, dirs_exist_ok=True)
    with (tmp_path / changed).open("a") as file:
        file.write("-- changed\n")
    monkeypatch.setattr(registry, "template_directory", lambda: tmp_path)
    registry._templates_sha256.cache_clear()
    try:
        (other,) = plan_of('[[job]]\nanalysis="singular-locus"\nspec="lightning(d=2,dp=1)"\n').jobs
    finally:
        registry._templates_sha256.cache_clear()
    assert other.script_sha256 != job.script_sha256


def test_all_errors_are_reported_with_the_paths_of_their_keys() -> None:
    text = """\
[[grid]]
analysis = "dimenson"
model = "lightning"
d = [2, 3]
when = "a <= d"
[[grid]]
analysis = "dimension"
model = "lightning"
d = [2, "x y"]
dp = 1
when = "d < "
timeout = "soon"
[[grid]]
analysis = ["closure", "dimensoin"]
model = "lightning"
d = "1..e"
memory = "lots"
tags = ["../../etc"]
priority = 1.5
[[job]]
analysis = "dimension"
spec = "lightning(d=0,dp=1)"
[[job]]
model = "lightning"
[[job]]
analysis = "dimension"
model = "linear(widths=[2,1,2])"
"""
    mistakes = mistakes_of(text)
    for path, words in (
        ("grid[0].analysis", "did you mean dimension?"),
        ("grid[0].when", "unknown name 'a'"),
        ("grid[1].when", "expression 'd < ', column"),
        ("grid[1].timeout", "is not a duration"),
        ("grid[2].analysis", "there is no analysis 'dimensoin'"),
        ("grid[2].memory", "is not a size"),
        ("grid[2].tags", "tags must be"),
        ("grid[2].priority", "priority must be"),
        ("job[0].spec", "d should be between 1 and"),
        ("job[1]", "this job has no analysis"),
        ("job[1]", "a job requires analysis and spec"),
        ("job[2].model", "write a whole specification as spec = 'linear(widths=[2,1,2])'"),
    ):
        assert any(path == where and words in message for where, message in mistakes), (path, words, mistakes)


def test_errors_in_the_defaults_have_their_path() -> None:
    assert mistakes_of(f'[defaults]\ntimeout = "soon"\n{EXAMPLE}{EXAMPLE}')[0][0] == "defaults.timeout"


def test_syntax_errors_have_a_position() -> None:
    assert "(at line 2, column 5)" in mistakes_of("[[grid]]\nx = = 1\n")[0][1]
    assert "line 1 column" in mistakes_of('{"grid": [1, }', "jobs.json")[0][1]
    repeated = mistakes_of('{"job": [{"analysis": "x",\n "analysis": "y", "spec": "z"}]}', "jobs.json")
    assert any("duplicate" in message for _, message in repeated)
    assert "'x'" in mistakes_of("x = 1\n")[0][1]
    path, message = mistakes_of("")[0]
    assert path == ""
    assert "[[job]]" in message


HOSTILE = {
    "a billion jobs": '[[grid]]\nanalysis="dimension"\nmodel="lightning"\nd="1..1000000000"\ndp=1\n',
    "a billion in two axes": '[[grid]]\nanalysis="dimension"\nmodel="lightning"\nd="1..40000"\ndp="1..40000"\n',
    "a billion that depend": '[[grid]]\nanalysis="dimension"\nmodel="lightning"\nd="1..40000"\ndp="1..d"\na="1..dp"\n',
    "a billion, then nothing": '[[grid]]\nanalysis="dimension"\nmodel="lightning"\nd="1..999999999"\ndp="d..0"\n',
    "a huge bound": '[[grid]]\nanalysis="dimension"\nmodel="lightning"\nd="1..999999999999999999*999999999999999999"\ndp=1\n',
    "ranges in a circle": '[[grid]]\nanalysis="dimension"\nmodel="lightning"\nd="1..dp"\ndp="1..d"\n',
    "deep nesting": "[[grid]]\nd = " + "[" * 200_000 + "\n",
    "deep tables": "[" + ".".join("a" * 5000) + "]\n",
    "a path as analysis": '[[job]]\nanalysis="../../etc/passwd"\nspec="lightning(d=2,dp=1)"\n',
    "a path as family": '[[grid]]\nanalysis="dimension"\nmodel="../lightning"\nd=2\ndp=1\n',
    "a path as tag": '[[job]]\nanalysis="dimension"\nspec="lightning(d=2,dp=1)"\ntags=["../x"]\n',
    "a file elsewhere": '[[job]]\nanalysis="dimension"\nspec="file:../../../etc/hosts.toml"\n',
    "an absolute file": '[[job]]\nanalysis="dimension"\nspec="file:/etc/hosts.toml"\n',
    "code in a spec": '[[job]]\nanalysis="dimension"\nspec=\'lightning(d=2,dp=1); run "touch pwned"\'\n',
    "code in an argument": '[[grid]]\nanalysis="dimension"\nmodel="lightning"\nd=2\ndp=\'1) ; run "touch pwned" --\'\n',
    "code in an option": '[[grid]]\nanalysis="closure"\nmodel="lightning"\nd=2\ndp=1\nmethod=\'"; get "!touch pwned"\'\n',
    "code in a condition": '[[grid]]\nanalysis="dimension"\nmodel="lightning"\nd=2\ndp=1\nwhen=\'__import__("os").abort()\'\n',
    "NUL": '[[job]]\nanalysis="dimension"\nspec="lightning(d=2,dp=1)\\u0000"\n',
    "a long number": "[[grid]]\nd = " + "9" * 100_000 + "\n",
    "a smuggled argument": '[[grid]]\nanalysis="dimension"\nmodel="lightning"\nd=2\ndp=1\nparametrization="attention,t=9"\n',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_rejected_quickly(name: str, tmp_path: Path) -> None:
    registry.jobs()
    path = tmp_path / "jobs.toml"
    path.write_text(HOSTILE[name])
    start = time.monotonic()
    with pytest.raises(InputError) as caught:
        expand(jobfile.read(path))
    assert time.monotonic() - start < 5
    assert caught.value.message
    assert sorted(p.name for p in tmp_path.iterdir()) == ["jobs.toml"]


def test_a_large_file_is_rejected_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "jobs.toml"
    with path.open("wb") as file:
        file.truncate(10**10)
    with pytest.raises(InputError, match=f"{jobfile.LARGEST_JOB_FILE:,}"):
        jobfile.read(path)


def test_the_option_max_jobs_allows_more_jobs() -> None:
    text = '[[grid]]\nanalysis="dimension"\nmodel="lightning"\nd=2\ndp=1\nseed="1..50"\n'
    with pytest.raises(ParseError, match="--max-jobs"):
        plan_of(text, most_jobs=49)
    assert len(plan_of(text, most_jobs=50).jobs) == 50


def test_a_model_from_a_file_is_stored_by_content(tmp_path: Path) -> None:
    (tmp_path / "cubic.toml").write_text('variables=["s","t"]\npolynomials=["s^3","s^2*t","s*t^2","t^3"]\n')
    path = tmp_path / "jobs.toml"
    path.write_text('[[job]]\nanalysis="dimension"\nspec="file:cubic.toml"\n')
    (job,) = expand(jobfile.read(path)).jobs
    assert job.spec.startswith("map:s,t->")
    assert str(tmp_path) not in json.dumps(job.document())


def test_a_grid_is_expanded_up_to_the_maximum() -> None:
    grid = Grid.of({"a": axis_of("1..d"), "d": axis_of("1..100"), "b": axis_of("1..10")}, None)
    assert sum(1 for _ in grid.points(5050 * 10)) == 5050 * 10
    with pytest.raises(OutOfReachError):
        list(grid.points(5050 * 10 - 1))


def test_an_unknown_entry_is_reported_with_a_suggestion() -> None:
    for misspelt in ('timout = "3s"', "timout = 3", 'timout = "soon"', "timout = [1, 2]"):
        [(path, message)] = mistakes_of(f"{EXAMPLE}{misspelt}\n")
        assert path == "grid[0].timout"
        assert "timeout" in message
    [(path, message)] = mistakes_of(
        '[[job]]\nanalysis = "dimension"\nspec = "lightning(d=2,dp=1)"\nsede = 1\n'
    )
    assert path == "job[0].sede"
    assert "seed" in message
    heads = (
        '[[grid]]\nanalysis = "dimension"\nmodel = "deep-lightning"\nd = [[2,2]]\na = 2\nt = 2\nheads = 1\n'
    )
    assert plan_of(heads).jobs  # a family's own argument, and no other's
    assert mistakes_of(heads.replace("deep-lightning", "softmax"))[0][0] == "grid[0].heads"


def test_a_list_meant_as_one_value_is_explained() -> None:
    text = '[[grid]]\nanalysis = "dimension"\nmodel = "mlp"\nwidths = [2,2,1]\nr = [2,3]\n'
    [(path, message)] = mistakes_of(text)
    assert path == "grid[0].widths"
    assert "[[2, 2, 1]]" in message
    assert len(plan_of(text.replace("[2,2,1]", "[[2,2,1]]")).jobs) == 2
    wrong = mistakes_of('[[grid]]\nanalysis = "dimension"\nmodel = "lightning"\nd = [0, 2]\ndp = 1\n')
    assert [path for path, _ in wrong] == ["grid[0].d"]
    assert "100000" in wrong[0][1]


def test_one_error_does_not_hide_another() -> None:
    text = """\
[[grid]]
analysis = "dimension"
model = "lightnin"
d = "1.."
dp = "1..q"
a = "1..z"
timout = "3s"
[[grid]]
analysis = "dimension"
model = "lightning"
d = 0
dp = 1
timout = 3
"""
    mistakes = mistakes_of(text)
    keys = ("[0].model", "[0].d", "[0].dp", "[0].a", "[0].timout", "[1].d", "[1].timout")
    assert {path for path, _ in mistakes} == {f"grid{key}" for key in keys}
    for key, words in zip(
        keys,
        ("did you mean lightning?", "is not a range", "depends on q", "depends on z", "no entry", "d should be", "no entry"),
        strict=True,
    ):  # fmt: skip
        assert any(path == f"grid{key}" and words in message for path, message in mistakes)


def test_an_invalid_default_is_reported_once() -> None:
    assert [path for path, _ in mistakes_of(f"[defaults]\ntimout = 3\n{EXAMPLE}")] == ["defaults.timout"]


@pytest.mark.parametrize("family", [family for family in FAMILIES.values() if family.build is not None])
def test_the_arguments_of_a_family_are_those_of_its_example(family: Family) -> None:
    assert set(read(family.example).values) <= set(family.arguments)
