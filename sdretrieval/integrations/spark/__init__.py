"""Collections past one machine: Lucene shards ranked together, exactly as one index would be, on Apache Spark.

    shards        a sharded collection on disk, and one shard as a worker sees it
    packed        sorted strings in plain arrays: merged vocabularies, look-ups of docids
    totals        N, df, cf over all shards, summed once and kept; the same of the past; counts along time
    requests      what a worker answers: best documents, scores, rows. Pure functions of a shard, no Java
    merging       how many documents each shard is asked for, and one list out of their answers
    ranking       the driver's side: two exact phases (three with a time prior) for a batch of topics
    runners       where requests are answered: in this process, or on Spark
    storage       addresses: whatever file system Spark sees
    copies        local copies of what lies at an address
    session       finding Spark's Java, and starting Spark in the background
    gateway       Spark's JVM on this machine, started at once
    daemon        the process that Python workers are forked from
    classes       an archive of Spark's classes, for shorter starts
    reading       a corpus to documents, in parallel
    building      a corpus to shards, in parallel
    batches       runs written batch by batch, so that a stopped one can be taken up again
    expansions    expanded queries, saved and replayed as one index does
    watching      signs of life on a terminal

Only ``runners``, ``session``, ``gateway``, ``daemon`` and ``building`` know Spark, and import it when used.
"""

import os
import re

BATCH = 250  # topics that share the passes over the shards


def at_once(master: str) -> int | None:
    """How many tasks run at a time, where that is in one process of this machine and each is tried once; else None.

    Tasks that may be tried again (on clusters, on `local[cores,attempts]`) are to be small, and each for itself.
    """
    cores = re.fullmatch(r"local(?:\[(\d+|\*)\])?", master)
    if cores is None:
        return None
    return (os.cpu_count() or 1) if cores[1] == "*" else int(cores[1] or 1)


def is_one_machine(master: str) -> bool:
    """Whether a master's tasks run in one process of this machine; `local-cluster` starts executors."""
    return master.startswith("local") and "cluster" not in master
