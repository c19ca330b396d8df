"""CLI: ``m2bridge status DIR`` shows the progress of the batches of a store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from m2bridge.batch.display import counts_text, host_lines
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
        console.print(f"records: {counts_text(counts)}", markup=False)


def _show(runner: dict[str, Any], console: Console) -> None:
    cached = sum(runner["cached"].values())
    done = sum(runner["done"].values())
    left = "" if runner["eta_seconds"] is None else f", about {runner['eta_seconds']:.0f} s left"
    lines = [
        f"{runner['source']}: {cached + done} of {runner['total']} jobs ({cached} from the store), {runner['waiting']} waiting; "
        f"{runner['seconds']:.0f} s, {runner['memory_bytes'] / 2**30:.1f} GB{left}"
    ]
    failed = {outcome: count for outcome, count in runner["done"].items() if outcome != "complete"}
    if failed:
        lines.append(f"  {counts_text(failed)}")
    lines += [f"  {job['seconds']:.0f} s  {job['job']}  {job['step']}" for job in runner["running"]]
    lines += [f"  {line}" for line in host_lines(runner["hosts"])]
    lines += [f"  worker not used: {reason}" for reason in runner["excluded"]]
    if runner["stopping"]:
        lines.append(f"  {runner['stopping']}")
    for line in lines:
        console.print(line, markup=False)
