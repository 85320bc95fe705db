"""The process that Spark forks its Python workers from, with what they need imported once instead of in each.

Named by the setting ``spark.python.daemon.module``; started by Spark as ``python -m`` this module.
"""

if __name__ == "__main__":
    import contextlib
    import gc
    import importlib.util
    import socket
    import sys
    import zipimport
    from pathlib import Path

    # Spark puts its PySpark, an archive of sources, before the installed one. Where that brought the archive along they
    # are the same, and a module of the archive would be compiled anew each time: most of a second.
    archives = [path for path in sys.path if path.endswith("pyspark.zip")]
    sys.path[:] = [path for path in sys.path if path not in archives]
    installed = importlib.util.find_spec("pyspark")
    if not all(
        installed is not None and installed.origin is not None and Path(installed.origin).parent in Path(path).parents
        for path in archives
    ):
        sys.path[1:1] = archives
        importlib.invalidate_caches()

    from pyspark import daemon

    with contextlib.suppress(ImportError):  # a worker's own import will say better what is missing
        import sdretrieval.integrations.spark.requests
        import sdretrieval.integrations.spark.runners  # noqa: F401
    # Before every task a worker has all importers look again at what there is, and those of zip archives read the whole
    # directory of PySpark's, thirteen times over: a fifth of a second. The archives do not change.
    zipimport.zipimporter.invalidate_caches = lambda self: None  # type: ignore[method-assign]
    # A worker collects garbage after every task; what was imported here need not be looked through each time.
    gc.collect()
    gc.freeze()

    # Java sends a task in two small pieces, and holds the second back until the first is acknowledged; which Linux does
    # after 40 ms, where nothing goes the other way. So acknowledge at once: most tasks do not take as long as that.
    work = daemon.worker

    def worker(sock: socket.socket, authenticated: bool) -> int:
        if hasattr(socket, "TCP_QUICKACK"):  # lasts for a while only: hence before each task
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        return work(sock, authenticated)

    daemon.worker = worker
    daemon.manager()
