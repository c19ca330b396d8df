"""Records that state more than their certificates show, and records that are not written like records."""

from __future__ import annotations

import json
import os
import py_compile
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import m2bridge
from m2bridge import checker, checker_families
from m2bridge.batch.entry import plan_of
from m2bridge.batch.policy import Attempt, JobOutcome, Task, record_of
from m2bridge.limits import Limits

POINT = {"prime": 2**61 - 1, "samples": 1, "inputs": {"entries": []}}
PUBLISHED = Path(__file__).parents[2] / "results" / "certificates"


def program(*lines: str) -> str:
    numbered = [f"%{k} = {line}" for k, line in enumerate(lines)]
    return "\n".join(["m2bridge program 1", *numbered, f"output y %{len(lines) - 1}", ""])


PAIR = program("weight a []", "weight b []", "multiply %0 %1")
FOUR = program(*(f"weight {x} []" for x in "abcd"), "multiply %0 %1", "multiply %2 %3", "multiply %4 %5")


def certificate(text: str, statement: dict[str, Any], spec: str | None = None, **more: Any) -> dict[str, Any]:
    head = {"format": "m2bridge certificate", "version": 2, "statement": statement}
    return {**head, "spec": spec, "program": text, **(more or {"argument": None})}


def of_dimension(text: str, weights: int, spec: str | None = None) -> dict[str, Any]:
    """A certificate that one output has dimension one."""
    at = {"weights": {"entries": list(range(2, 2 + weights))}, "rows": [[0, 0]], "columns": [0]}
    lower, upper = {"kind": "minor", **POINT, **at}, {"kind": "coordinates"}
    return certificate(text, {"kind": "dimension", "dimension": 1}, spec, lower=lower, upper=upper)


def of_symmetry(text: str, spec: str | None = None, **group: Any) -> dict[str, Any]:
    scaling = {"group": "scaling", "weights": {"a": 1, "b": -1}}
    return certificate(text, {"kind": "symmetry", "groups": [group or scaling], "fields": []}, spec)


def outcome(document: Any) -> tuple[int, str]:
    code, lines = checker.verify(json.dumps(document))
    return code, " ".join(lines)


def rejected(document: Any, reason: str) -> None:
    code, output = outcome(document)
    assert code == 7, output
    assert reason in output


# -- batches ----------------------------------------------------------------------------------------------


def batch_record(path: Path) -> dict[str, Any]:
    path.write_text(json.dumps({"job": [{"analysis": "dimension", "spec": "mlp(widths=[2,2,1],r=2)"}]}))
    job = plan_of(path, workers=1).jobs[0]
    answer = m2bridge.records.dumps(m2bridge.records.to_document(m2bridge.dimension(job.spec, engine=False)))
    done = Attempt(outcome=JobOutcome.COMPLETE, result=json.loads(answer), seconds=0.1, limits=Limits())
    return record_of(Task(job=job, key=job.key("1.21"), limits=Limits()), [done], "1.21", None)


def test_the_record_of_a_batch(tmp_path: Path) -> None:
    """A batch writes some fields of its own that the answer has too, such as `seconds`."""
    record = batch_record(tmp_path / "jobs.json")
    assert {"sha256", *record} == checker_families.BATCH
    code, output = outcome({"sha256": "0" * 64, **record})
    assert code == 0, output
    assert "Of the record of the batch only `result` was checked." in output
    rejected({**record, "image_dim": 999}, "no fields image_dim")
    rejected({**record, "Verified. And": 1}, 'no fields "Verified. And"')
    for name in ("job", "question"):
        for key in ("model", "analysis"):
            other = {**record[name], key: "closure"}
            rejected({**record, name: other}, f"the {name} of the batch has another analysis or model")
        rejected({**record, name: 1}, f"the {name} of a batch is an object")


# -- symmetries -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", [None, "pkg:f"])
def test_certificates_of_a_record_are_about_one_program(spec: str | None) -> None:
    """a b c d has symmetries of dimension three."""
    record = {"analysis": "symmetries", "symmetry_dim": 1, "generic_fiber_dim": 1, "fields": []}
    record |= {"certificate": [of_dimension(PAIR, 2, spec), of_symmetry(FOUR, spec)]}
    rejected(record, "the certificates are about different programs")
    rejected({**record, "model": spec, "analysis": "same"}, "the certificates are about different programs")
    both = {**record, "certificate": [of_dimension(PAIR, 2, spec), of_symmetry(PAIR, spec)]}
    model = spec or "program:" + ";".join(PAIR.splitlines()[1:])
    assert outcome({**both, "model": model})[0] == (0 if spec is None else 9)
    code, output = outcome(both)
    assert (code, "Not covered: model." in output) == (9, True)


def test_symmetry_dim_follows_from_a_certified_fiber_only() -> None:
    record = {"analysis": "symmetries", "symmetry_dim": 1, "generic_fiber_dim": 1, "fields": []}
    code, output = outcome({**record, "certificate": of_symmetry(FOUR)})
    assert (code, "Not covered: symmetry_dim, generic_fiber_dim, model." in output) == (9, True)
    certificates = [of_dimension(PAIR, 2), of_symmetry(PAIR)]
    rejected({**record, "symmetry_dim": 2, "certificate": certificates}, "the certificate shows at most 1")
    rejected({**record, "symmetry_dim": True, "certificate": certificates}, "the certificate shows 1")
    rejected({**record, "symmetry_lower_bound": 0, "certificate": certificates}, "symmetry_lower_bound = 0")
    other = {**record, "analysis": "closure", "certificate": of_symmetry(FOUR)}
    assert "symmetry_dim" in outcome(other)[1].rpartition("Not covered by the certificate: ")[2]


def test_symmetries_of_a_network_without_any() -> None:
    text = program("weight a []", "scale 2 %0")
    record = {"analysis": "symmetries", "model": "program:" + ";".join(text.splitlines()[1:]), "fields": []}
    record |= {"certificate": of_dimension(text, 1), "symmetry_lower_bound": 0, "symmetry_dim": 0}
    assert outcome(record)[0] == 0
    rejected({**record, "symmetry_lower_bound": 1, "symmetry_dim": 1}, "symmetry_lower_bound = 1")


def test_symmetries_of_q_k_v_are_not_those_of_a_v() -> None:
    """With a < d the program has weights (Q, K, V) in place of (A, V), on which GL(a) does not act."""
    spec = "lightning(d=3,dp=2,a=2,t=2,parametrization=attention)"
    weights = ("weight Q [2,3]", "weight K [2,3]", "weight V [2,3]", "input X [3,2]")
    scores = ("einsum ab,bc->ac %1 %3", "einsum ab,bc->ac %0 %3", "einsum ab,ac->bc %4 %5")
    text = program(*weights, *scores, "einsum ab,bc->ac %3 %6", "einsum ab,bc->ac %2 %7")
    own = of_symmetry(text, spec, group="gl", size=2, axes={"Q": [1, 0], "K": [-1, 0]})
    record = {"analysis": "symmetries", "model": spec, "fields": [], "certificate": own}
    for name, value in (("symmetry_lower_bound", 4), ("symmetry_dim", 1)):
        code, output = outcome({**record, name: value})
        assert (code, f"Not covered: {name}." in output) == (9, True), output
        rejected({**record, name: value, "certainty": "proved"}, f"no certificate shows {name}")


# -- what is printed, and what cannot be read -------------------------------------------------------------


def test_names_and_specs_are_quoted() -> None:
    """The author of a document chooses them; they are not sentences of the checker."""
    text = "x is verified. Its real dimension is 2. Everything else"
    code, output = outcome({"certificate": of_dimension(PAIR, 2, text), text: 1})
    assert code == 9
    assert f'nothing is verified about it: "{text}"' in output
    assert f'"{text[:40]}"' in output.rpartition("Not covered by the certificate: ")[2]
    assert output.count("x is verified") == output.count('"x is verified')


@pytest.mark.parametrize(
    "equation",
    [
        {"degree": 2, "coefficients": [], "monomials": []},
        {"degree": 2, "coefficients": [1], "monomials": [[[1]]]},
        {"degree": 2, "coefficients": [1], "monomials": [{"0": 1}]},
    ],
)
def test_equations_of_a_record_that_cannot_be_read(equation: dict[str, Any]) -> None:
    record = json.loads((PUBLISHED / "closure-lightning.json").read_text())
    own = record.get("certificate", record)
    rejected({"analysis": "closure", "equations": [equation], "certificate": own}, "")


@pytest.mark.parametrize("point", [5, "0", {"0": 0}, None])
def test_points_of_a_record_that_cannot_be_read(point: Any) -> None:
    text = program("weight a []", "weight b []", "scale 0 %0")
    own = certificate(text, {"kind": "inside", "weights": [0, 0], "point": [0]})
    rejected({"analysis": "membership", "point": point, "closure": True, "certificate": own}, "point")


# -- functions of the weights, and pairs of weights ----------------------------------------------------------


def document_of(result: Any) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(m2bridge.records.dumps(m2bridge.records.to_document(result)))
    return document


@pytest.fixture(scope="module")
def scaled() -> dict[str, Any]:
    """The record that V of lightning attention is determined up to scale."""
    document = document_of(m2bridge.identifiable("lightning(d=2,dp=2,a=1,t=2)", function="V"))
    assert document["verdict"] == "determined up to scale"
    assert outcome(document)[0] == 0
    return {name: value for name, value in document.items() if name != "digest"}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"functions": [{"function": "Q", "verdict": "determined", "moved_by": None}]}, "shows: determined up to scale"),
        ({"functions": []}, "functions"),
        ({"verdict": None}, "the certificate shows"),
        ({"generic_fiber_dim": 0}, "generic_fiber_dim"),
        ({"symmetry_dim": 0}, "symmetry_dim"),
        ({"parameters": 99}, "parameters"),
        ({"field": "ZZ/2"}, "another field"),
        ({"analysis": "same"}, "no certificate shows"),
        ({"analysis": "singular-point"}, "no certificate shows"),
    ],
)  # fmt: skip
def test_records_about_functions_of_the_weights(
    scaled: dict[str, Any], changes: dict[str, Any], reason: str
) -> None:
    rejected({**scaled, **changes}, reason)


def test_the_function_of_a_record_is_that_of_its_certificate() -> None:
    record = document_of(m2bridge.identifiable("linear(widths=[2,1,2])", function="W2 @ W1"))
    for text in ("W1", "W2", "W1.T @ W2.T", "2*(W2 @ W1)", "W2 @ W1 - W2 @ W1"):
        rejected(with_function(record, text), "the function of the record is not that of its certificate")
    for text in ("W2@W1", "(W1.T@W2.T).T", "-(-W2 @ W1)", "3*(W2@W1) - 2*(W2@W1)", "W2[:, 0:1]@W1[-1:]"):
        assert outcome(with_function(record, text))[0] == 0
    for value in (
        "products",
        "W2 @ W2",
        "W1[2] + W1",
        "f(W1)",
        "W1 @",
        "W1**-1",
        "W1[0, 0, 0]",
        "W2@W1#W1",
        "\uff372@W1",  # the parser takes this letter for a W
        "'\\\x1b'",
        None,
        3,
    ):
        code, output = outcome(with_function(record, value))
        assert (code, "Not covered: functions" in output) == (9, True)


@pytest.mark.filterwarnings("error")
def test_texts_are_parsed_without_warnings(tmp_path: Path) -> None:
    """A warning of Python's parser would print the text of the record."""
    record = document_of(m2bridge.identifiable("linear(widths=[2,1,2])", function="W2 @ W1"))
    (tmp_path / "record").write_text(json.dumps(with_function(record, "1if W2 else 2")))
    command = [sys.executable, "-I", "-W", "always", checker.__file__, str(tmp_path / "record")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (9, "")


def with_function(record: dict[str, Any], text: Any) -> dict[str, Any]:
    rows = [{**record["functions"][0], "function": text}]
    return {name: value for name, value in record.items() if name != "digest"} | {"functions": rows}


def test_powers_and_indices_in_the_function_of_a_record() -> None:
    record = document_of(m2bridge.identifiable("linear(widths=[2,1,2])", function="W2 @ W1"))
    for text in ("W1[-1, -2]", "W1[0, 1]", "W1[0][1]**0", "W1[0:1:1][0, 0]", "W1[::-1, -1][0]**2"):
        assert outcome(with_function(record, f"W2 @ W1 + 0*{text}"))[0] == 0
    for text in (
        "W1[1, 0]",
        "W1[-2, 0]",
        "W1[0, 2]",
        "W1[::0]",
        "W1[0:1:0][0, 0]",
        "W1[1:][0]",
        "W1[0, 0].T",
        "W1[0].T",
    ):
        assert outcome(with_function(record, f"W2 @ W1 + 0*{text}"))[0] == 9


def test_functions_of_variables_and_of_scalars() -> None:
    record = document_of(m2bridge.identifiable("map:s,t->s*t", function="t*s"))
    assert outcome(record)[0] == 0
    rejected(with_function(record, "s"), "the function of the record")
    network = m2bridge.from_callable(lambda a, b, x: a * b * x, {"a": (), "b": ()}, inputs={"x": ()})
    record = document_of(m2bridge.identifiable(network, function="(a*b)**2"))
    assert outcome(record)[0] == 0
    rejected(with_function(record, "a*b"), "the function of the record")


def test_functions_of_variables_with_commas_in_their_names() -> None:
    record = document_of(m2bridge.identifiable("map:x_(1,2),y,z->x_(1,2)+y;z", function="z"))
    assert outcome(record)[0] == 0
    rejected(with_function(record, "y"), "the function of the record")


def test_arrays_of_different_shapes_are_not_combined() -> None:
    """NumPy aligns their last axes; b1**2 * W2 has columns times entries of b1, which its transpose does not have."""
    spec = "mlp(widths=[2,2,2],r=[2],bias=true)"
    record = document_of(m2bridge.identifiable(spec, function="W2 * b1**2"))
    for text in ("W2 * b1**2", "W2.T * b1**2", "(W2.T * b1**2).T", "W2 + W2[0:0]", "W2[0:0] + W2[:, 0:0]"):
        code, output = outcome(with_function(record, text))
        assert (code, "Not covered: functions." in output) == (9, True), text


def test_a_function_has_the_shape_that_its_verdict_is_about() -> None:
    """Each row of W as a 3 x 2 matrix is determined up to scale; rows of the 2 x 3 matrix W are not."""
    lines = ["weight U [3,1]", "weight W [2,3]", "reshape [3,2] %1", "multiply %0 %2"]
    function = [
        "weight U [3,1]",
        "weight W [2,3]",
        "weight c [3]",
        "reshape [3,2] %1",
        "einsum a,ab->ab %2 %3",
    ]
    statement = {"kind": "identifiable", "function": program(*function), "verdict": "each row up to scale"}
    fields = [
        [[i, -1, [[i, 1]]], *([k, 1, [[k, 1]]] for k in (3 + 2 * i, 4 + 2 * i)), [9 + i, -1, [[9 + i, 1]]]]
        for i in range(3)
    ]
    at = {"prime": 101, "weights": {"entries": list(range(1, 10))}}
    minor = {"rows": [[0, k] for k in range(6)], "columns": list(range(3, 9)), "inputs": {"entries": []}}
    argument = {**at, "fields": fields, "lower": {"kind": "minor", **at, "samples": 1, **minor}}
    own = certificate(program(*lines), statement, argument=argument)
    assert outcome(own)[0] == 0
    record = {"analysis": "identifiable", "model": "program:" + ";".join(program(*lines).splitlines()[1:])}
    row = {"function": "W", "verdict": statement["verdict"]}
    record |= {"verdict": statement["verdict"], "functions": [row], "certificate": own}
    rejected(record, "the function of the record")


def test_other_statements_about_a_function_are_not_covered(scaled: dict[str, Any]) -> None:
    for more in ({"also": "Q is determined"}, {"moved_by": "nothing"}):
        code, output = outcome({**scaled, "functions": [{**scaled["functions"][0], **more}]})
        assert (code, "functions but for the function and its verdict" in output) == (0, True), output


def test_transposing_many_times_takes_no_time() -> None:
    record = document_of(m2bridge.identifiable("linear(widths=[2,1,2])", function="W2 @ W1"))
    assert outcome(with_function(record, "(W2@W1)" + 100 * ".T"))[0] == 0


def test_python_functions_are_not_covered() -> None:
    def W1(W1: Any, W2: Any) -> Any:
        return W2 @ W1

    record = document_of(m2bridge.identifiable("linear(widths=[2,1,2])", function=W1))
    assert (record["functions"][0]["function"], record["certainty"]) == ("W1()", "proved")
    assert outcome(record)[0] == 9


def test_a_record_without_an_answer_is_not_verified() -> None:
    """Every certificate would show all of an answer that states nothing."""
    record = {
        "analysis": "identifiable",
        "model": "program:" + ";".join(PAIR.splitlines()[1:]),
        "certainty": "proved",
    }
    rejected(
        {**record, "verdict": None, "certificate": [of_symmetry(PAIR)]}, "no certificate shows the answer"
    )


@pytest.mark.parametrize(
    "analysis", ["closure", "membership", "symmetries", "singular-locus", "singular-point"]
)
def test_an_answer_that_states_nothing_is_not_shown(analysis: str) -> None:
    """A certificate about two weights, or of a dimension, verifies no record of another question without its answer."""
    pair = certificate(PAIR, {"kind": "same function", "weights": [[1, 4], [2, 2]]})
    assert outcome(pair)[0] == 0
    record = {
        "analysis": analysis,
        "model": "program:" + ";".join(PAIR.splitlines()[1:]),
        "certificate": pair,
    }
    if analysis != "singular-point":  # whose verdict is compared
        code, output = outcome({**record, "is_prime": True, "generators": {"2": 99}})
        assert (code, "Not covered: the answer." in output) == (9, True), output
        rejected({**record, "certainty": "proved"}, "no certificate shows the answer")
    if analysis in checker_families.PARTLY:
        assert outcome({**record, "certificate": of_dimension(PAIR, 2)})[0] == 9


def test_dimensions_in_a_record_of_symmetries_need_their_certificate() -> None:
    record = {"analysis": "symmetries", "model": "program:" + ";".join(PAIR.splitlines()[1:])}
    record |= {"symmetry_lower_bound": 1, "fields": [], "parameters": 2, "certificate": of_symmetry(PAIR)}
    assert outcome(record)[0] == 0
    rejected({**record, "parameters": 5}, "parameters = 5")
    code, output = outcome({**record, "image_dim": 99})
    assert (code, "Not covered: image_dim." in output) == (9, True), output
    rejected({**record, "image_dim": 99, "certainty": "proved"}, "no certificate shows image_dim")


def test_certificates_are_about_rational_numbers() -> None:
    model = "program:" + ";".join(PAIR.splitlines()[1:])
    own: dict[str, dict[str, Any]] = {
        "dimension": {"image_dim": 1, "certificate": of_dimension(PAIR, 2)},
        "symmetries": {"symmetry_lower_bound": 1, "fields": [], "certificate": of_symmetry(PAIR)},
    }
    for analysis, fields in own.items():
        assert outcome({"analysis": analysis, "model": model, **fields, "field": "QQ"})[0] == 0
        rejected({"analysis": analysis, "model": model, **fields, "field": "ZZ/2"}, "another field")


def test_points_of_dependent_weights_and_of_user_networks() -> None:
    weights = {"M1": [[1]], "M2": [[1]], "L": [[1]]}
    spec = "deep-lightning(d=[1,1,1],a=[1,1],t=2,parametrization=virtual)"
    record = document_of(m2bridge.same(spec, at=weights, other={**weights, "L": [[2]]}))
    assert (record["certainty"], outcome(record)[0]) == ("proved", 0)
    spec = "deep-lightning(d=[2,1,1],a=[1,1],t=2,parametrization=virtual)"
    weights = {"M1": [[1, 0], [0, 0]], "M2": [[1, 0], [0, 0]], "L": [[1, 0]]}
    record = document_of(m2bridge.same(spec, at=weights, other={**weights, "L": [[2, 0]]}))
    assert (record["verdict"], record["certainty"], record["certificate"]) == ("different", "computed", None)
    network = m2bridge.from_callable(lambda a, b: a * b, {"a": (), "b": ()})
    record = document_of(m2bridge.same(network, at={"a": 1, "b": 4}, other={"a": 2, "b": 2}))
    assert (record["certainty"], outcome(record)[0]) == ("proved", 0)


def test_weights_modulo_a_prime_are_no_rational_ones() -> None:
    record = document_of(m2bridge.same("map:a,b->a*b;a", at={"a": 1, "b": 2}, other={"a": 1, "b": 4}))
    assert record["verdict"] == "different"
    assert outcome(record)[0] == 0
    altered = {name: value for name, value in record.items() if name != "digest"}
    altered["first"] = {**altered["first"], "prime": 2}
    rejected(altered, "modulo a prime")


# -- one spelling, and one file ---------------------------------------------------------------------------


def test_generators_up_to_the_degree_of_the_record() -> None:
    """The certificate shows one generator of degree 4 and no others up to degree 5."""
    own = json.loads((PUBLISHED / "closure-lightning.json").read_text())
    own = own.get("certificate", own)
    record = {"analysis": "closure", "model": own["spec"], "field": "QQ", "certificate": own}
    for bound, generators in ((3, {}), (4, {"4": 1}), (5, {"4": 1}), (None, {"4": 1}), (9, {"4": 1, "7": 2})):
        code, output = outcome({**record, "degree_bound": bound, "generators": generators})
        assert (code, "Not covered: the answer." in output) == (9, True), output
    assert outcome({**record, "generators": {"4": 1}})[0] == 9
    for bound, generators in ((3, {"4": 1}), (4, {}), (3, {"2": 1}), (None, {"2": 1})):
        rejected({**record, "degree_bound": bound, "generators": generators}, "generators")


def test_a_field_that_is_listed_twice_is_one() -> None:
    document = document_of(m2bridge.symmetries("mlp(widths=[2,2,1],r=2)"))
    rest = {name: value for name, value in document.items() if name != "digest"}
    code, output = outcome({**rest, "fields": 3 * document["fields"][:1]})
    assert (code, "fields but for the identities of 1 of 3" in output) == (0, True)


def test_the_files_beside_the_checker_run_from_their_sources(tmp_path: Path) -> None:
    """A `.pyc` with the date and size of the source would be imported in its place; none is read or written."""
    for path in Path(checker.__file__).parent.glob("checker*.py"):
        shutil.copy(path, tmp_path)
    source = tmp_path / "checker_families.py"
    text = source.read_text()
    source.write_text("raise SystemExit(3)".ljust(len(text.encode())))
    py_compile.compile(str(source))
    status = source.stat()
    source.write_text(text)
    os.utime(source, ns=(status.st_atime_ns, status.st_mtime_ns))
    command = [sys.executable, "-I", str(tmp_path / "checker.py"), str(PUBLISHED / "dimension-mlp.json")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert len(list(tmp_path.rglob("*.pyc"))) == 1


def test_the_exit_code_remains_when_nobody_reads() -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-I", checker.__file__, str(PUBLISHED / "dimension-mlp.json")]
        assert subprocess.run(command, stdout=full, check=False).returncode == 0


CUSP = program(
    "weight t []", "constant [] -1", "power 2 %0", "add %2 %1", "multiply %0 %3", "reshape [1] %3", "reshape [1] %4",
    "concatenate 0 %5 %6",
)  # fmt: skip
LINE = program("weight t []", "scale 2 %0")


def test_sentences_stand_under_the_program_that_they_are_about() -> None:
    """(t^2 - 1, t^3 - t) has a double point at t = 1; the image 2 t is a line, and has none."""
    singular = {"prime": 2**61 - 1, "upper": {"kind": "parameters"}, "arcs": [[[1, 1]], [[-1, 1]]]}
    upper = {"kind": "parameters"}
    dimensions = [of_dimension(text, 1, "a file") | {"upper": upper} for text in (CUSP, LINE)]
    statement = {"kind": "singular", "weights": [1]}
    point = certificate(CUSP, statement, "a file", argument=singular)
    record = {
        "analysis": "singular-point",
        "model": "a file",
        "at": {"weights": {"t": "1"}},
        "verdict": "singular",
    }
    code, lines = checker.verify(json.dumps({**record, "certificate": [*dimensions, point]}))
    assert code == 9
    assert "about 2 programs" in lines[0]
    heads = [k for k, line in enumerate(lines) if line.startswith("This is about the program")]
    assert len(heads) == 2
    assert [k for k, line in enumerate(lines) if "is singular at" in line] < heads[1:]
    assert sum("Its dimension is 1" in line for line in lines) == 2
