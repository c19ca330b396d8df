"""CLI: ``m2bridge status DIR``: what the batches of a store are doing, from another terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from m2bridge.batch.display import host_lines
from m2bridge.batch.rows import read_rows
from m2bridge.batch.store import Store
from m2bridge.cli import common


def register(app: typer.Typer) -> None:
    @app.command("status")
    def command(
        directory: Annotated[Path, typer.Argument(help="The store of a batch.")],
        as_json: common.JsonOption = False,
    ) -> None:
        """What the batches of a store are doing now, and how many records of each outcome it has."""
        store = Store.open(directory)
        runners, found = store.living(), read_rows(store)
        counts = found.outcomes
        common.name_strays(found.strays)
        if as_json:
            common.print_json({"runners": runners, "records": counts})
            return
        console = common.console()
        for runner in runners:
            _show(runner, console)
        if not runners:
            console.print("no batch is running here", markup=False)
        shown = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items())) or "none"
        console.print(f"records: {shown}", markup=False)


def _show(runner: dict[str, Any], console: Console) -> None:
    cached, done = sum(runner["cached"].values()), sum(runner["done"].values())
    left = "" if runner["eta_seconds"] is None else f", about {runner['eta_seconds']:.0f} s left"
    console.print(
        f"{runner['source']}: {cached + done} of {runner['total']} jobs ({cached} from the store), {runner['waiting']} waiting; "
        f"{runner['seconds']:.0f} s, {runner['memory_bytes'] / 2**30:.1f} GB{left}",
        markup=False,
    )
    failed = {outcome: count for outcome, count in runner["done"].items() if outcome != "complete"}
    if failed:
        console.print(
            "  " + ", ".join(f"{count} {outcome}" for outcome, count in failed.items()), markup=False
        )
    for job in runner["running"]:
        console.print(f"  {job['seconds']:.0f} s  {job['job']}  {job['step']}", markup=False)
    for line in host_lines(runner.get("hosts", {})):
        console.print(f"  {line}", markup=False)
    for why in runner.get("excluded", ()):
        console.print(f"  a worker is not used: {why}", markup=False)
    if runner["stopping"]:
        console.print(f"  {runner['stopping']}", markup=False)
