"""``python -m benchmarks``: every benchmark, one after the other; ``python -m benchmarks.NAME`` runs one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

# Not benchmarks: shared parts, digests of results, and the effectiveness tables of `make results`.
NOT_RUN = {"__init__", "__main__", "anserini", "collections", "corpus", "digests", "kept", "sharded", "tables"}


def names() -> list[str]:
    found = (path.stem for path in Path(__file__).parent.glob("*.py"))
    return sorted(name for name in found if name not in NOT_RUN and not name.startswith("results"))


if __name__ == "__main__":
    failed = []
    for name in names():
        print(f"\n== {name}", flush=True)
        if subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=False).returncode:
            failed.append(name)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")
