"""Collections past one machine: Lucene shards ranked together, exactly as one index would be, on Apache Spark.

    shards          a sharded collection, its manifest, and one shard as a worker sees it
    totals          N, df, cf over all shards, summed once and kept; the same of the past; counts along time
    requests        what a worker answers: best documents, scores, rows. Pure functions of a shard, no Java
    shard_ranking   the driver's side: two exact phases (three with a time prior) for a batch of topics
    search          topics in, a run out, batch by batch; a stopped run can be taken up again
    labelling       labels for all documents, from a classifier
    drifting        words over time
    runners         requests as tasks on Spark, and errors on their way back
    session         a SparkContext: which Java, which settings
    storage         addresses: whatever file system Spark sees
    copies          local copies of what lies at an address
    reading         a corpus to documents, in parallel
    building        a corpus to shards, in parallel

Only ``runners``, ``session``, ``storage``, ``reading`` and ``building`` know Spark, and import it when used.
"""

BATCH = 250  # topics that share the passes over the shards
