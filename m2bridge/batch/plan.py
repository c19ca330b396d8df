"""The plan of a job file: its distinct jobs, with the limits, tags and priority of each."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from m2bridge.batch.expansion import Models, SectionReader
from m2bridge.batch.job import Job
from m2bridge.batch.jobfile import FILE_ANALYSES, JobFile, Mistakes, Section
from m2bridge.batch.policy import larger
from m2bridge.batch.user_files import FileSectionReader
from m2bridge.limits import Limits

MOST_JOBS = 100_000
"""Largest number of jobs of one file, before duplicates are removed, unless ``--max-jobs`` allows more."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The distinct jobs of a job file in the order of the file, and the number of duplicates."""

    jobs: tuple[Job, ...]
    duplicates: int


def expand(file: JobFile, *, limits: Limits | None = None, most_jobs: int = MOST_JOBS) -> Plan:
    """Make the plan of a job file. `limits` are the defaults of limits that a section does not set.

    Raises
    ------
    ParseError
        The file has errors, or more than `most_jobs` points; field `mistakes`.
    """
    mistakes = Mistakes(file.mistakes.source, dict(file.mistakes.entries))
    file = dataclasses.replace(file, mistakes=mistakes)
    models = Models(file.path.parent)
    readers = [_reader_for(section)(section, file, models, limits or Limits()) for section in file.sections]
    points_of_sections = [(reader, reader.points(most_jobs)) for reader in readers]
    total = sum(len(points) for _, points in points_of_sections)
    if total > most_jobs:
        mistakes.add((), f"the file has {total:,} jobs, more than {most_jobs:,}; --max-jobs allows more")
        mistakes.raise_if_any()
    jobs: dict[str, Job] = {}
    duplicates = 0
    for reader, points in points_of_sections:
        for job in reader.jobs(points):
            key = job.key("")  # all jobs of a batch have the same Macaulay2
            duplicates += key in jobs
            jobs[key] = _merged(jobs[key], job) if key in jobs else job
    if not jobs and not mistakes.entries:
        mistakes.add((), "the file has no jobs: every grid is empty, or no point satisfies its filter")
    mistakes.raise_if_any()
    return Plan(tuple(jobs.values()), duplicates)


def _reader_for(section: Section) -> type[SectionReader]:
    """Return the class that expands a section. One with errors in its file entry is expanded as any other."""
    analysis = section.entries.get("analysis")
    return FileSectionReader if analysis in FILE_ANALYSES and analysis in section.entries else SectionReader


def _merged(first: Job, second: Job) -> Job:
    """Merge two equal jobs: the larger limits, the higher priority, all tags."""
    return dataclasses.replace(
        first,
        limits=larger(first.limits, second.limits),
        tags=tuple(dict.fromkeys(first.tags + second.tags)),
        priority=max(first.priority, second.priority),
    )
