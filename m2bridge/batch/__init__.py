"""Run many questions about many models, and store one record per job.

::

    job file ──► plan ──► runner ──► store ──► results
    (TOML, JSON) (jobs,    (starts     (one record     (rows, tables)
                  keys)     workers)    per job)

A job file (:mod:`~m2bridge.batch.jobfile`) is expanded (:mod:`~m2bridge.batch.expansion`) to a plan of distinct jobs
(:mod:`~m2bridge.batch.plan`), each with a key computed from everything that determines its answer. The runner
(:mod:`~m2bridge.batch.runner`) sends the jobs to workers (:mod:`~m2bridge.batch.worker`), which a launcher
(:mod:`~m2bridge.batch.launchers`) starts, and writes one record per job into the store (:mod:`~m2bridge.batch.store`).
:mod:`~m2bridge.batch.rows` reads the store and :mod:`~m2bridge.batch.tables` formats it.

In Python a batch is run by ``m2bridge.run_batch("jobs.toml", "weekend")`` (:mod:`~m2bridge.batch.entry`).
"""
