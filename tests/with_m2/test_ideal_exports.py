"""A closure handed on: to the question about ideals, and to Macaulay2's own reader of .mrdi files."""

from __future__ import annotations

import subprocess
from pathlib import Path

from m2bridge.engine import Engine, EngineInfo
from m2bridge.questions.closure import closure
from m2bridge.questions.ideal import ideal
from tests.running import PATIENCE


def test_the_equations_of_a_closure_are_an_ideal(engine: Engine) -> None:
    answer = closure("map:s,t->s^3;s^2*t;s*t^2;t^3", field="QQ", engine=engine)
    summary = ideal(answer, engine=engine)
    # the cone over the twisted cubic: dimension 2, degree 3 (Harris, Example 1.10)
    assert (summary.dim, summary.degree, summary.field) == (2, 3, "QQ")


def test_macaulay2_reads_an_mrdi_file_back(engine: Engine, engine_info: EngineInfo, tmp_path: Path) -> None:
    # the package MRDI came with Macaulay2 1.26; an older one has no such reader, and says so
    answer = closure("map:s,t->s^3;s^2*t;s*t^2;t^3", field="QQ", engine=engine)
    file = tmp_path / "cubic.mrdi"
    file.write_text(answer.written("mrdi"))
    (tmp_path / "read.m2").write_text(
        'needsPackage "MRDI"; validateMRDI get "cubic.mrdi"; I = loadMRDI get "cubic.mrdi";\n'
        f"{answer.to_m2().replace('I =', 'J =')}"
        "<< toString(sub(I, vars S) == J, degree I, codim I) << endl;\n"
    )
    done = subprocess.run(
        [str(engine_info.path), "--script", "read.m2"],
        cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    if tuple(map(int, engine_info.version.split(".")[:2])) < (1, 26):
        assert "MRDI" in done.stderr
    else:
        assert done.stdout.strip() == "(true,3,2)", done.stderr
