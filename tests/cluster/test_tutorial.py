"""The commands of docs/tutorials/cluster.md, as they are written there; all launchers give the same records."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from m2bridge.batch.store import Store
from tests.comparing import stable
from tests.running import run_command

pytestmark = pytest.mark.cluster
PAGE = (Path(__file__).parents[2] / "docs/tutorials/cluster.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```console ([a-z ]+)\n(.*?)```", PAGE, re.DOTALL)
JOBS = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)[0]


@pytest.mark.parametrize(("needs", "block"), BLOCKS, ids=[block.split()[4] for _, block in BLOCKS])
def test_the_page_can_be_followed(
    needs: str, block: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if "slurm" in needs:
        request.getfixturevalue("slurm")
    if "dask" in needs:
        pytest.importorskip("distributed", reason="pip install 'm2bridge[dask]'")
    (tmp_path / "jobs.toml").write_text(JOBS)
    lines = [line.removeprefix("$ ") for line in block.splitlines()]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    words = ["timeout", "900", "bash", "-e", "-c", "\n".join(lines)]
    run_command(words, cwd=tmp_path, env={**os.environ, "PATH": path})
    (store,) = (Store.open(path) for path in tmp_path.glob("by-*"))
    here = tmp_path / "here"
    command = [sys.executable, "-m", "m2bridge", "batch", str(tmp_path / "jobs.toml"), "--store", str(here)]
    run_command(command)
    local = Store.open(here)
    assert {k: stable(store.read(k)) for k in store.all_keys()} == {
        k: stable(local.read(k)) for k in local.all_keys()
    }
    assert len(list(local.all_keys())) == 10


def test_every_launcher_has_its_block() -> None:
    assert len(BLOCKS) == PAGE.count("```console") == 5
