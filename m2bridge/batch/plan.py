"""Batch: a job file becomes a plan: distinct jobs, each with the key under which its answer is stored."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from m2bridge.batch.expansion import Models, SectionReader
from m2bridge.batch.job import Job
from m2bridge.batch.jobfile import JobFile
from m2bridge.batch.policy import larger
from m2bridge.limits import Limits

MOST_JOBS = 100_000


@dataclass(frozen=True, slots=True)
class Plan:
    """The distinct jobs of a job file, in its order; how often one was named again."""

    jobs: tuple[Job, ...]
    duplicates: int


def expand(file: JobFile, *, limits: Limits | None = None, most_jobs: int = MOST_JOBS) -> Plan:
    """The plan of a job file; `limits` are for jobs that do not say. More points than `most_jobs` are refused and not made.

    Raises
    ------
    ParseError
        With every mistake of the file in field `mistakes`; nothing has been run.
    """
    mistakes, models = file.mistakes, Models(file.path.parent)
    readers = [SectionReader(section, file, models, limits or Limits()) for section in file.sections]
    swept = [(reader, reader.points(most_jobs)) for reader in readers]
    total = sum(len(points) for _, points in swept)
    if total > most_jobs:
        mistakes.add((), f"the file names {total:,} jobs, more than {most_jobs:,}; --max-jobs allows more")
        mistakes.raise_if_any()
    jobs: dict[str, Job] = {}
    duplicates = 0
    for reader, points in swept:
        for job in reader.jobs(points):
            key = job.key("")
            duplicates += key in jobs
            jobs[key] = _merged(jobs[key], job) if key in jobs else job
    if not jobs and not mistakes.found:
        mistakes.add((), "no job is left: every grid is empty or filtered out")
    mistakes.raise_if_any()
    return Plan(tuple(jobs.values()), duplicates)


def _merged(first: Job, second: Job) -> Job:
    """One job named twice: the larger limits, the higher priority, all tags."""
    return dataclasses.replace(
        first,
        limits=larger(first.limits, second.limits),
        tags=tuple(dict.fromkeys(first.tags + second.tags)),
        priority=max(first.priority, second.priority),
    )
