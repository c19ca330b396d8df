"""CLI: ``m2bridge status DIR`` shows the progress of the batches of a store."""

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
        directory: Annotated[Path, typer.Argument(help="Directory of the store.")],
        as_json: common.JsonOption = False,
    ) -> None:
        """Show the progress of the batches of a store, and its number of records per outcome."""
        store = Store.open(directory)
        runners = store.running_states()
        contents = read_rows(store)
        counts = contents.outcomes
        common.report_unknown_files(contents.strays)
        if as_json:
            common.print_json({"runners": runners, "records": counts})
            return
        console = common.console()
        for runner in runners:
            _show(runner, console)
        if not runners:
            console.print("no batch is running", markup=False)
        shown = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items())) or "none"
        console.print(f"records: {shown}", markup=False)


def _show(runner: dict[str, Any], console: Console) -> None:
    cached = sum(runner["cached"].values())
    done = sum(runner["done"].values())
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
    for reason in runner.get("excluded", ()):
        console.print(f"  worker not used: {reason}", markup=False)
    if runner["stopping"]:
        console.print(f"  {runner['stopping']}", markup=False)
