"""Batch: a thousand jobs, nothing lost.

::

    job file ──► plan ──► runner ──► store ──► results
    (TOML, JSON) (jobs,    (starts     (one record a   (rows, tables)
                  keys)     workers)    finished job)

A job file (:mod:`~m2bridge.batch.jobfile`) becomes a plan of distinct jobs (:mod:`~m2bridge.batch.plan`; what a section of the
file means is in :mod:`~m2bridge.batch.expansion`), each with a key made of everything that determines its answer. The runner
(:mod:`~m2bridge.batch.runner`) gives the jobs to workers (:mod:`~m2bridge.batch.worker`) that a launcher
(:mod:`~m2bridge.batch.launchers`) starts, and writes one record for each into the store (:mod:`~m2bridge.batch.store`), which
:mod:`~m2bridge.batch.rows` reads and :mod:`~m2bridge.batch.tables` prints.

From Python a batch is run by ``m2bridge.run_batch("jobs.toml", "weekend")`` (:mod:`~m2bridge.batch.entry`).
"""
