"""Latency of a served search with feedback: 8 clients for a minute over the messages of rhelp, beside Anserini's RM3.

Both answer the same queries behind the same server (uvicorn, as many threads) with ten hits and their texts: ours with
`blend`, marked snippets and all that the page shows; the peer with SimpleSearcher, set_rm3 and the stored texts alone.
Clients keep their connections and ask one query after the other, each another one. Java is called by one thread at a
time in both: pyjnius mixes up objects of several.

    python -m benchmarks.serve                 # a minute each, in turns of 15 s
    python -m benchmarks.serve --seconds 10 --model rm3
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from urllib.parse import quote

import numpy as np

from benchmarks.collections import Collection
from sdretrieval.collection.records import Topic

CLIENTS = 8
TURN = 15.0
OURS = """
import sys
from sdretrieval import Index
from sdretrieval.serve.app import make_app
from sdretrieval.serve.listening import serve
from sdretrieval.serve.workers import Workers
index = Index(sys.argv[1])
index.search("warm up")
serve(make_app([index], workers=Workers(2)), "127.0.0.1", 0, lambda address: print(address, flush=True))
"""
PEER = """
import json, sys
from fastapi import FastAPI
from fastapi.responses import JSONResponse
from sdretrieval.core.jvm import java_class, java_lock
from sdretrieval.serve.listening import serve
from sdretrieval.serve.workers import Workers
searcher, workers = java_class("io.anserini.search.SimpleSearcher")(sys.argv[1]), Workers(2)
searcher.set_rm3(50, 40, 0.5)
app = FastAPI()
def found(q, hits):
    with java_lock:
        hits = [(hit.docid, hit.score, searcher.doc_raw(hit.docid)) for hit in searcher.search(q, hits)]
    return [{"docid": docid, "score": score, "text": json.loads(raw)["contents"]} for docid, score, raw in hits]
@app.get("/v1/{index}/search")
async def search(index: str, q: str, hits: int = 10, model: str = ""):
    return JSONResponse({"hits": await workers.do(found, q, hits)})
serve(app, "127.0.0.1", 0, lambda address: print(address, flush=True))
"""


class Served:
    """A server in a process of its own."""

    def __init__(self, code: str, index: Path) -> None:
        self.process = subprocess.Popen([sys.executable, "-c", code, str(index)], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip().removeprefix("http://")
        self.milliseconds: list[float] = []
        self.errors = 0

    def resident(self) -> int:
        """MB of the process's own memory."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return next(int(line.split()[1]) // 1024 for line in status.splitlines() if line.startswith("RssAnon"))

    def ask(self, paths: itertools.cycle, until: float) -> None:
        """One client."""
        line = http.client.HTTPConnection(self.address, timeout=120)
        while time.perf_counter() < until:
            began = time.perf_counter()
            line.request("GET", next(paths))
            answer = line.getresponse()
            body = answer.read()
            self.milliseconds.append(1000 * (time.perf_counter() - began))
            self.errors += answer.status != 200 or not json.loads(body)["hits"]
        line.close()

    def turn(self, paths: list[str], seconds: float) -> None:
        until = time.perf_counter() + seconds
        step = len(paths) // CLIENTS
        shares = [itertools.cycle(paths[i * step :] + paths[: i * step]) for i in range(CLIENTS)]
        clients = [threading.Thread(target=self.ask, args=(share, until)) for share in shares]
        for client in clients:
            client.start()
        for client in clients:
            client.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="for each server")
    parser.add_argument("--model", default="blend")
    parser.add_argument(
        "--index", type=Path, help="of rhelp, with document vectors; made under indexes/ where not given"
    )
    args = parser.parse_args()
    collection = Collection("rhelp")
    if not collection.available:
        print("../shared/data/rhelp is not on this machine")
        return
    measure(args.index or collection.index, collection.topics, args.model, args.seconds)


def measure(index: Path, topics: list[Topic], model: str, seconds: float) -> None:
    paths = [f"/v1/{index.name}/search?q={quote(topic.text)}&hits=10&model={model}" for topic in topics]
    servers = {"ours": Served(OURS, index), "SimpleSearcher, RM3": Served(PEER, index)}
    try:
        memory: dict[str, list[int]] = {name: [] for name in servers}
        for server in servers.values():  # warm, and not counted
            server.turn(paths, min(TURN, seconds))
            server.milliseconds.clear()
        for _ in range(max(1, round(seconds / TURN))):
            for name, server in servers.items():
                server.turn(paths, min(TURN, seconds))
                memory[name].append(server.resident())
        told = {name: np.percentile(server.milliseconds, [50, 99]) for name, server in servers.items()}
        for name, (p50, p99) in told.items():
            server = servers[name]
            rate = f"p50 {p50:.0f} ms, p99 {p99:.0f} ms, {len(server.milliseconds)} answers, {server.errors} errors"
            print(f"{name}: {rate}, own memory {' '.join(map(str, memory[name]))} MB")
        ratio = told["SimpleSearcher, RM3"] / told["ours"]
        print(f"{model}: the peer takes {ratio[0]:.1f} x our time at p50, {ratio[1]:.1f} x at p99")
    finally:
        for server in servers.values():
            server.process.terminate()
            server.process.wait()


if __name__ == "__main__":
    main()
