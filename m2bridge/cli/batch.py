"""CLI: ``m2bridge batch``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from m2bridge.batch.display import Display, Lines, Picture, RunState, counts_text
from m2bridge.batch.entry import plan_of, run_batch
from m2bridge.batch.launchers import open_launcher
from m2bridge.batch.plan import MOST_JOBS, Plan
from m2bridge.batch.policy import Settings, Task, limits_document, triage
from m2bridge.batch.store import Store
from m2bridge.cli import common
from m2bridge.engine import find_engine
from m2bridge.engine.machine import allowed_cores
from m2bridge.errors import InputError, NoEngineError, ParseError
from m2bridge.families.user_code import allowing

_MOST_JOBS_EVER = 10_000_000  # largest value of --max-jobs


def register(app: typer.Typer) -> None:
    @app.command("batch")
    def command(
        job_file: Annotated[Path, typer.Argument(help="Job file (.toml or .json) with jobs and grids.")],
        store: Annotated[
            Path | None, typer.Option("--store", help="Directory of the records; created if missing.")
        ] = None,
        workers: Annotated[
            int | None,
            typer.Option(
                "--workers", min=1, max=1024, help="Number of concurrent jobs (default: one per core)."
            ),
        ] = None,
        dry_run: Annotated[
            bool, typer.Option("--dry-run", help="Print the jobs that would run, and exit.")
        ] = False,
        retry: Annotated[
            bool,
            typer.Option("--retry", help="Run again the jobs that reached a limit, crashed or were refused."),
        ] = False,
        escalate: Annotated[
            float | None,
            typer.Option(
                "--escalate",
                min=1.0,
                help="Run again the jobs that reached a limit, with their limits multiplied by this factor.",
            ),
        ] = None,
        timeout: Annotated[
            str, typer.Option("--timeout", help="Default time limit per job: 90s, 10m, 2h, or none.")
        ] = "10m",
        memory: Annotated[
            str | None,
            typer.Option(
                "--memory",
                help="Default memory limit per job (default: 4G, or less if the workers would not fit into memory).",
            ),
        ] = None,
        most_jobs: Annotated[
            int,
            typer.Option(
                "--max-jobs", min=1, max=_MOST_JOBS_EVER, help="Refuse a job file with more jobs than this."
            ),
        ] = MOST_JOBS,
        allow_code: Annotated[
            bool,
            typer.Option(
                "--allow-code", help="Execute Python files named by specs such as torch:net.py:build."
            ),
        ] = False,
        launcher: Annotated[
            str | None,
            typer.Option(
                "--launcher",
                help="Command prefix that starts each worker on another machine, e.g. 'srun -N1 -n1 --exact' or 'ssh node'. That "
                "machine needs the same version of m2bridge, and a Macaulay2 unless --engine gives its path.",
            ),
        ] = None,
        dask: Annotated[
            str | None,
            typer.Option(
                "--dask",
                help="Use the workers of a Dask cluster: local, tcp://127.0.0.1:8786 or tls://HOST:8786.",
            ),
        ] = None,
        dask_tls: Annotated[
            Path | None,
            typer.Option(
                "--dask-tls", help="Private directory with ca.pem, cert.pem and key.pem for --dask tls://."
            ),
        ] = None,
        dask_slurm: Annotated[
            Path | None,
            typer.Option(
                "--dask-slurm",
                help="TOML file with queue, account, walltime, memory: workers by sbatch (dask-jobqueue).",
            ),
        ] = None,
        shard: Annotated[
            str | None,
            typer.Option(
                "--shard",
                help="Run one part of the jobs, e.g. 2/8 (for sbatch --array); all parts may use one store.",
            ),
        ] = None,
        engine: common.EngineOption = None,
        as_json: common.JsonOption = False,
    ) -> None:
        """Run the jobs of a job file. Results are cached; running the same command again continues.

        Exit codes: 0 all jobs answered; 3 witnesses disagree in some job; 5 some jobs reached a limit; 1 some crashed; 2 some
        were refused, or the job file is invalid; 4 no Macaulay2, or it stopped working; 130 interrupted.

        Example: m2bridge batch jobs.toml --store results
        """
        worker_count = workers or allowed_cores()
        remote = launcher is not None or dask_slurm is not None or dask not in (None, "local")
        with allowing(allow_code):
            plan = _plan(
                job_file, workers=1 if remote else worker_count, timeout=timeout, memory=memory,
                most_jobs=most_jobs, shard=shard,
            )  # fmt: skip
        if dry_run:
            settings = Settings(
                engine_version=_engine_version(engine), workers=worker_count, retry=retry, escalate=escalate
            )
            _dry_run(plan, store, settings, as_json=as_json)
            return
        if store is None:
            raise InputError("missing --store DIR, the directory for the records (--dry-run needs none)")
        if (store / "store.json").is_file():
            common.report_unknown_files(Store.open(store).contents().strays)
        with open_launcher(
            engine, command=launcher, dask=dask, dask_slurm=dask_slurm, tls_directory=dask_tls, workers=workers,
            show=_print_lines,
        ) as (chosen_launcher, slots):  # fmt: skip
            done = run_batch(
                job_file, store, plan=plan, shard=shard, workers=slots, retry=retry, escalate=escalate, engine=engine,
                launcher=chosen_launcher, display=_display(quiet=as_json),
            )  # fmt: skip
        if as_json:
            common.print_json(
                {
                    "store": str(store),
                    "outcomes": done.outcomes,
                    **done.state.document(),
                    "duplicates": done.duplicates,
                }
            )
        else:
            _summary(done.state, store, common.console())
        if done.interrupted:
            common.report("interrupted; run the same command again to continue")
        raise typer.Exit(done.exit_code)


def _print_lines(text: str) -> None:
    """Print each line of a text on standard error."""
    for line in text.splitlines():
        common.report(line)


def _plan(path: Path, **options: Any) -> Plan:
    """Return the plan of a job file. Print each error of the file on a line of its own."""
    try:
        return plan_of(path, **options)
    except ParseError as error:
        lines = error.fields.get("lines")
        if not lines:
            raise
        for line in lines:
            common.report(f"{path}: {line}")
        count = len(error.fields["mistakes"])
        raise InputError(f"{path} has {count} error{'s' * (count > 1)}; no job was run") from None


def _engine_version(engine: str | None) -> str:
    try:
        return find_engine(engine).version
    except NoEngineError:
        return ""


def _display(*, quiet: bool) -> Display:
    if quiet:
        return Display()
    err = common.console(stderr=True)
    return Picture(err) if err.is_terminal else Lines(err)


def _dry_run(plan: Plan, directory: Path | None, settings: Settings, *, as_json: bool) -> None:
    store = Store.open(directory) if directory is not None and (directory / "store.json").exists() else None
    standing, tasks = triage(plan, store, settings)
    if as_json:
        to_run = [
            {
                **t.job.document(),
                "key": t.key,
                "limits": limits_document(t.limits),
                "priority": t.job.priority,
            }
            for t in tasks
        ]
        counts = {"jobs": len(plan.jobs), "duplicates": plan.duplicates, "cached": standing.total()}
        common.print_json({**counts, "to_run": to_run})
        return
    console = common.console()
    console.print(_task_table(tasks))
    console.print(
        f"\n{len(plan.jobs)} jobs ({plan.duplicates} duplicates removed): {standing.total()} answered in the store, "
        f"{len(tasks)} to run with {settings.workers} workers"
    )


def _task_table(tasks: list[Task]) -> Table:
    table = Table(show_edge=False, pad_edge=False)
    table.add_column("job", overflow="fold")
    for name in ("priority", "time limit"):
        table.add_column(name, justify="right")
    for task in tasks:
        wall = "none" if task.limits.wall_seconds is None else f"{task.limits.wall_seconds:g} s"
        table.add_row(escape(task.job.title), str(task.job.priority or ""), wall)
    return table


def _summary(state: RunState, store: Path, console: Console) -> None:
    counts = counts_text(state.outcomes)
    console.print(
        f"{state.finished} of {state.total} jobs: {counts}; {state.cached.total()} from the store; "
        f"{state.seconds:.1f} s",
        markup=False,
    )
    if state.failed:
        console.print(
            f"see: m2bridge results {store} --where 'outcome != \"complete\"'", markup=False, soft_wrap=True
        )
