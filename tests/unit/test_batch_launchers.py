"""The choice of a launcher, shards, and the security of Dask connections; no process is started."""

from __future__ import annotations

import io
import os
import re
from pathlib import Path

import pytest
from rich.console import Console

from m2bridge.batch.display import Host, Lines, RunState, live_view
from m2bridge.batch.entry import parse_shard, plan_of
from m2bridge.batch.launchers import CommandLauncher, open_launcher
from m2bridge.errors import InputError

GRID = {"grid": [{"analysis": "dimension", "model": "lightning", "d": 2, "dp": [1, 2], "seed": "0..6"}]}


@pytest.mark.parametrize("parts", [1, 3, 20])
def test_every_job_is_in_exactly_one_shard(parts: int) -> None:
    whole = plan_of(GRID, workers=1).jobs
    shards = [plan_of(GRID, workers=1, shard=f"{i}/{parts}").jobs for i in range(1, parts + 1)]
    assert sorted(job.key("1.21") for shard in shards for job in shard) == sorted(
        j.key("1.21") for j in whole
    )
    assert max(map(len, shards)) - min(map(len, shards)) <= 1


@pytest.mark.parametrize("text", ["0/3", "4/3", "1/0", "1", "-1/3", "1/3/3", "one/two", "1/10000000"])
def test_invalid_shards(text: str) -> None:
    with pytest.raises(InputError, match="--shard"):
        parse_shard(text)


def test_the_launcher_that_the_options_select(tmp_path: Path) -> None:
    with open_launcher(None) as (launcher, workers):
        assert (launcher, workers) == (None, None)
    with open_launcher(None, command="env A=1", workers=3) as (launcher, workers):
        assert isinstance(launcher, CommandLauncher)
        assert workers == 3
    with (
        pytest.raises(InputError, match="--dask"),
        open_launcher(None, command="env", dask="local"),
    ):
        pass
    for options in ({}, {"command": "env"}, {"dask_slurm": tmp_path / "slurm.toml"}):
        with (
            pytest.raises(InputError, match="--dask-tls requires --dask"),
            open_launcher(None, tls_directory=tmp_path, **options),
        ):
            pass


def test_hosts_are_displayed() -> None:
    hosts = {"n1": Host("Macaulay2 1.21 (path)", 2, 7), "n2": Host("Macaulay2 1.21 (path)", 1, 3)}
    state = RunState(source="jobs.toml", total=10, workers=3, hosts=hosts)
    console = Console(file=io.StringIO(), width=120, force_terminal=False)
    console.print(live_view(state))
    lines = Lines(console)
    lines.update(state)
    lines.update(state)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert re.search(r"n2: Macaulay2 1\.21 \(path\), 1 \w+, 3 ", text)
    assert len(re.findall(r"n1: Macaulay2 1\.21 \(path\)$", text, re.MULTILINE)) == 1
    assert state.document()["hosts"]["n1"]["jobs"] == 7


def test_certificates_for_a_scheduler(tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="pip install 'm2bridge[dask]'")
    from m2bridge.batch.dask_workers import security_of

    for local in ("tcp://127.0.0.1:8786", "tcp://localhost:8786", "tcp://[::1]:8786"):
        assert security_of(local, None) is None
    for address in (
        "tcp://10.0.0.1:8786",
        "tcp://node7:8786",
        "tcp://0.0.0.0:1",
        "inproc://x",
        "tls://node7",
        "",
    ):
        with pytest.raises(InputError):
            security_of(address, tmp_path)
    own = tmp_path / "tls"
    own.mkdir(mode=0o700)
    with pytest.raises(InputError, match=r"ca\.pem"):
        security_of("tls://node7:8786", own)
    for name in ("ca.pem", "cert.pem", "key.pem"):
        (own / name).touch(mode=0o600)
    assert security_of("tls://node7:8786", own).require_encryption
    os.chmod(own, 0o755)
    with pytest.raises(InputError, match="chmod"):
        security_of("tls://node7:8786", own)
