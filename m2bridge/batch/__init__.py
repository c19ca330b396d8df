"""Batch: a thousand jobs, nothing lost.

::

    job file ──► plan ──► runner ──► store ──► results
    (TOML, JSON) (jobs,    (starts     (one record a   (index, tables)
                  keys)     workers)    finished job)

A job file (:mod:`~m2bridge.batch.jobfile`) becomes a plan of distinct jobs (:mod:`~m2bridge.batch.plan`; what a section of the
file means is in :mod:`~m2bridge.batch.sections`), each with a key made of everything that determines its answer. The runner
(:mod:`~m2bridge.batch.runner`) gives the jobs to workers (:mod:`~m2bridge.batch.worker`) that a launcher
(:mod:`~m2bridge.batch.launchers`) starts, and writes one record for each into the store (:mod:`~m2bridge.batch.store`). The index
(:mod:`~m2bridge.batch.index`) is derived from the records and can always be made again.

The package can be called: ``m2bridge.batch("jobs.toml", "weekend")`` is :func:`m2bridge.batch.entry.run`.
"""

from __future__ import annotations

import sys
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from m2bridge.batch.entry import BatchResult


class _Callable(types.ModuleType):
    """This package: ``m2bridge.batch`` is the function for those who call it and the package for those who import from it."""

    def __call__(self, *arguments: Any, **options: Any) -> BatchResult:
        """Run a batch: see :func:`m2bridge.batch.entry.run`."""
        from m2bridge.batch.entry import run

        return run(*arguments, **options)


sys.modules[__name__].__class__ = _Callable
