"""Batch: a thousand jobs, nothing lost.

::

    job file ──► plan ──► runner ──► store ──► results
    (TOML, JSON) (jobs,    (workers,   (one record a   (index, tables)
                  keys)     limits)     finished job)

A job file (:mod:`~m2bridge.batch.jobfile`) becomes a plan of distinct jobs (:mod:`~m2bridge.batch.plan`), each with a key
made of everything that determines its answer. The runner (:mod:`~m2bridge.batch.runner`) gives the jobs to worker processes
and writes one record for each into the store (:mod:`~m2bridge.batch.store`). The index (:mod:`~m2bridge.batch.index`) is
derived from the records and can always be made again.
"""
