"""The process that Spark forks its Python workers from, with what they need imported once instead of in each.

Named by the setting ``spark.python.daemon.module``; started by Spark as ``python -m`` this module.
"""

if __name__ == "__main__":
    import contextlib
    import gc
    import zipimport

    from pyspark.daemon import manager

    with contextlib.suppress(ImportError):  # a worker's own import will say better what is missing
        import sdretrieval.integrations.spark.requests
        import sdretrieval.integrations.spark.runners  # noqa: F401
    # Before every task a worker has all importers look again at what there is, and those of zip archives read the whole
    # directory of PySpark's, thirteen times over: a fifth of a second. The archives do not change.
    zipimport.zipimporter.invalidate_caches = lambda self: None  # type: ignore[method-assign]
    # A worker collects garbage after every task; what was imported here need not be looked through each time.
    gc.collect()
    gc.freeze()
    manager()
