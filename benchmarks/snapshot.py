"""Building the snapshot against Anserini's indexing of the same corpus, in one run.

Must hold: snapshot time <= 0.15 x Anserini's indexing time; postings leave the JVM at >= 10 million a second; peak
memory of the build < 2 x the snapshot's size. Each step runs in a process of its own, so that memory is its own.

    python -m benchmarks.snapshot                       # 250,000 real passages
    python -m benchmarks.snapshot --passages 2000000
    python -m benchmarks.snapshot --index INDEX         # what opening its snapshot costs, the first time and later
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.corpus import documents

INDEX = """
import json, sys
from sdretrieval.collection.corpus import Reader
from sdretrieval.index.lucene.indexing import build_index
summary = build_index(Reader(date="date").read([sys.argv[1]]), sys.argv[2], store_docvectors=True)
print(json.dumps({"seconds": summary.seconds_indexing}))  # Anserini's part alone
"""

SNAPSHOT = """
import json, resource, sys, threading, time
from pathlib import Path
import sdretrieval.index.snapshot as s
from sdretrieval.core import jvm
from sdretrieval.index.lucene import export
from sdretrieval.index.rows import rows_by_term  # compiled code is loaded from its cache

jvm.start_jvm()

def private():  # memory of the process's own: mapped files can be dropped at any time
    text = Path("/proc/self/smaps_rollup").read_text()
    return sum(int(line.split()[1]) for line in text.splitlines() if line.startswith(("Private_Dirty", "Anonymous:"))
               and "Anon" in line) * 1024

before, peak, done = private(), [0], []
def watch():
    while not done:
        peak[0] = max(peak[0], private())
        time.sleep(0.01)
if sys.argv[2] == "watch":  # in a run of its own: looking costs time
    threading.Thread(target=watch, daemon=True).start()
spent = {}
real = export.run_exporter
def timed(*a):
    began = time.perf_counter(); told = real(*a); spent["export"] = time.perf_counter() - began
    spent.update({name: float(told[name]) for name in ("opening", "postings", "rest")})
    return told
export.run_exporter = timed
began = time.perf_counter()
snapshot = s.open_snapshot(sys.argv[1])
seconds = time.perf_counter() - began
done.append(1)
folder = next(p for p in s.snapshot_folder(sys.argv[1]).iterdir())
size = sum(f.stat().st_size for f in folder.iterdir())
began = time.perf_counter()
s.open_snapshot(sys.argv[1])
opened = time.perf_counter() - began
cold = dict(spent)
s.open_snapshot(sys.argv[1], rebuild=True)  # again in the same JVM, its code compiled by now
print(json.dumps({"seconds": seconds, "cold": cold, "warm": spent, "postings": snapshot.n_postings,
                  "documents": snapshot.n_docs, "terms": snapshot.n_terms, "size": size,
                  "memory": peak[0] - before, "open": opened}))
"""

OPENING = """
import json, os, subprocess, sys, tempfile, time
if len(sys.argv) == 2:
    os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp()  # nothing is remembered of earlier processes
from sdretrieval.index.snapshot import open_snapshot

def opened():
    began, before = time.perf_counter(), time.process_time()
    snapshot = open_snapshot(sys.argv[1])
    return [time.perf_counter() - began, time.process_time() - before, snapshot.n_docs]

told = {"child" if len(sys.argv) > 2 else "first": opened(), "again": opened()}
if len(sys.argv) == 2:
    command = [sys.executable, "-c", sys.orig_argv[2], sys.argv[1], "child"]
    told["child"] = json.loads(subprocess.run(command, capture_output=True, text=True).stdout)["child"]
print(json.dumps(told))
"""


def run(code: str, *arguments: object) -> dict:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(out.splitlines()[-1])


def opening(index: str) -> None:
    run(OPENING, index)  # compiles what is not compiled yet, and reads the files into memory
    told = run(OPENING, index)
    for name, label in (("first", "first in a process tree"), ("child", "in a child"), ("again", "again")):
        seconds, processor, documents = told[name]
        print(f"{documents:,} documents, {label}: {seconds:.3f} s, {processor:.3f} s of processor time")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passages", type=int, default=250_000)
    parser.add_argument("--index", help="an index that is there")
    args = parser.parse_args()
    if args.index:
        opening(args.index)
        return
    docs = documents(args.passages)
    with tempfile.TemporaryDirectory(dir=docs.parent) as folder:
        index = Path(folder) / "index"
        indexed = run(INDEX, docs, index)["seconds"]
        memory = run(SNAPSHOT, index, "watch")["memory"]  # also compiles what is not compiled yet
        shutil.rmtree(index.with_name("index.snapshot"))
        s = run(SNAPSHOT, index, "time")
    print(f"{s['documents']:,} documents, {s['terms']:,} terms, {s['postings']:,} postings")
    print(f"Anserini indexes in {indexed:.2f} s; the snapshot takes {s['seconds']:.2f} s")
    print(f"  ratio {s['seconds'] / indexed:.3f}  (limit 0.15)")
    for label, spent in (("JVM that has just started", s["cold"]), ("warm JVM", s["warm"])):
        rates = [s["postings"] / spent[part] / 1e6 for part in ("postings", "export")]
        print(f"  {label}: postings leave at {rates[0]:.1f} million a second (limit 10)")
        print(f"    {rates[1]:.1f} with opening the index ({spent['opening']:.2f} s), docids, times and the bridge")
    print(
        f"  peak memory {memory / 1e6:.0f} MB for a snapshot of {s['size'] / 1e6:.0f} MB: "
        f"{memory / s['size']:.2f} x (limit 2)"
    )
    print(f"  opening it takes {1e3 * s['open']:.1f} ms")


if __name__ == "__main__":
    main()
