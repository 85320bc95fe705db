"""Mutation fuzzing of every reader: seeds of our own, altered in a thousand ways, are read or refused, nothing else.

    make fuzz N=100000        or: python tests/fuzzing.py 100000 [READER …]

A case is a reader and a number, and the same on every machine: ``python tests/fuzzing.py 1 zip --first 1234`` runs
one. Readers may return, or raise a SdretrievalError. What counts against them: any other exception, a crash of the
process, more than 5 seconds, and documents of an archive that are silently not there (what tar, gzip, bzip2, xz and
unzip say of the archive is the measure).
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import io
import json
import lzma
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import traceback
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from sdretrieval.collection.corpus.reading import Reader
from sdretrieval.collection.corpus.record import Problems
from sdretrieval.collection.trec import TOPIC_FORMATS, read_qrels, read_run, read_times, read_topics
from sdretrieval.core.errors import InputError, SdretrievalError
from sdretrieval.core.saved_arrays import load_arrays, save_arrays
from sdretrieval.evaluate.inputs import read_document_times, read_documents, read_manifest
from sdretrieval.evaluate.inputs import read_expansions as read_terms
from sdretrieval.evaluate.tune import Trace
from sdretrieval.index.ciff import write_ciff
from sdretrieval.index.snapshot import Snapshot
from sdretrieval.ranking.expansion import read_expanded_queries
from sdretrieval.ranking.profile_files import profile_settings, read_profile
from sdretrieval.ranking.registry import rankers

SECONDS = 5.0  # of the processor; a machine that is busy may take PATIENCE
PATIENCE = 30.0

# -- seeds ---------------------------------------------------------------------------------------------------------

WORDS = "tea price rises as harvest fails in the north after rain oil merger court strike vote".split()


def text_of(n: int) -> str:
    return " ".join(WORDS[(n * 7 + i * i) % len(WORDS)] for i in range(12))


RECORDS = [{"id": f"d{i}", "contents": text_of(i), "date": f"2020-01-{i + 1:02d}", "n": i / 3} for i in range(8)]
JSONL = "".join(json.dumps(record) + "\n" for record in RECORDS).encode()
SGML = "".join(
    f"<DOC>\n<DOCNO> d{i} </DOCNO>\n<DATE>2020010{i}</DATE>\n<TEXT>\n{text_of(i)} &amp; <P>x</P>\n</TEXT>\n</DOC>\n"
    for i in range(6)
).encode()
PAGE = (
    b"<!DOCTYPE html><html><head><title>Tea &amp; time</title><meta name='date' content='2020-01-01'>"
    b"<script>var x = '<meta>';</script></head><body><p>One<b>word</b> <a href='#x'>link</a><!-- no --></p>"
    b"<table><tr><td>1<td>2</table></body></html>"
)
CSV = ("id,contents,date\n" + "".join(f'd{i},"{text_of(i)}, ""so""",2020-01-0{i + 1}\n' for i in range(6))).encode()
TSV = CSV.replace(b",", b"\t").replace(b'"', b"")
MEMBERS = {f"sub/m{i}.txt": f"{text_of(i)}\n".encode() * (1 + 30 * i) for i in range(6)}
TOPICS = {
    "trec": "".join(
        f"<top>\n<num> Number: 05{i}\n<title> {text_of(i)}\n<desc> Description:\n{text_of(i + 1)}\n</top>\n"
        for i in range(3)
    ),
    "microblog": "".join(
        f"<top>\n<num> Number: MB00{i}\n<query> {text_of(i)} </query>\n"
        f"<querytime> Tue Feb 08 12:30:2{i} +0000 2011 </querytime>\n</top>\n"
        for i in range(3)
    ),
    "tsv": "qid\tquery\ttime\n" + "".join(f"q{i}\t{text_of(i)}\t2020-01-0{i + 1}\n" for i in range(3)),
    "jsonl": "".join(json.dumps({"qid": i, "text": text_of(i), "time": 1e9, "desc": ["x"]}) + "\n" for i in range(3)),
    "smart": "".join(f".I {i}\n.W\n{text_of(i)}\n" for i in range(3)),
    "cacm": "".join(f"<DOC>\n<DOCNO>{i}</DOCNO>\n{text_of(i)}\n</DOC>\n" for i in range(3)),
}
RUN = "".join(f"q{q} Q0 d{d} {d + 1} {9.5 - d} tag\n" for q in range(3) for d in range(5)).encode()
QRELS = "".join(f"q{q} 0 d{d} {d % 3 - 1}\n" for q in range(3) for d in range(5)).encode()
TIMES = "".join(f"q{q}\t2011-02-0{q + 1}T12:30:27Z\n" for q in range(5)).encode()
PROFILE = json.dumps({"sd3": {"fb_docs": 20, "fb_terms": 40}, "ql": {"smoothing": "dirichlet"}, "bm25": {"k1": 0.9}})
IDENTITY = {"model": "ql", "data": "00ff", "measure": "AP"}
TRACE = json.dumps({"tuning": IDENTITY}) + "\n"
TRACE += "".join(json.dumps({"settings": {"mu": i}, "values": {"1": i / 9, "2": 0.5}}) + "\n" for i in range(4))
DECISIONS = "".join(
    json.dumps({"docid": f"d{i}", "time": None, "topic": "t", "score": i / 7, "on_topic": i > 2, "adapted": False})
    + "\n"
    for i in range(5)
)
EXPANSIONS = "".join(
    json.dumps(
        {
            "qid": f"{i}",
            "query": "tea",
            "model": "sd",
            "weighting": {"type": "bm25"},
            "background": 0.0,
            "with_constant": False,
            "terms": {"tea": 0.5, "price": 0.25 + i},
            "feedback": [{"docid": "d1", "weight": 1.0}],
        }
    )
    + "\n"
    for i in range(3)
)
MANIFEST = json.dumps({"command": ["sdretrieval", "search"], "parameters": {"mu": 2500.0}, "index": {"docs": 9}})
JOURNAL = "".join(json.dumps([i, f"d{i}", 1000 * i, {"s1-1": 2.0, f"w{i}": 1.0}, [0, 0]]) + "\n" for i in range(4))


def tar_of(members: dict[str, bytes], format: int = tarfile.PAX_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=format) as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def zip_of(members: dict[str, bytes], compression: int) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data, compress_type=compression)
    return out.getvalue()


def in_pieces(compress: Callable[[bytes], bytes], data: bytes, pieces: int = 3) -> bytes:
    """Several members one after the other, as pigz and pbzip2 write them."""
    step = len(data) // pieces + 1
    return b"".join(compress(data[i : i + step]) for i in range(0, len(data), step))


_gzip = partial(gzip.compress, mtime=0)
COMPRESS: dict[str, Callable[[bytes], bytes]] = {"gz": _gzip, "bz2": bz2.compress, "xz": lzma.compress}
LONG_NAMES = {f"{'folder-' * 20}/m{i}-{'x' * 60}.txt": data for i, data in enumerate(MEMBERS.values())}
TARS = [tar_of(MEMBERS, tarfile.USTAR_FORMAT), tar_of(LONG_NAMES), tar_of(LONG_NAMES, tarfile.GNU_FORMAT)]
TARS.append(TARS[0] + tar_of({"sub/second.txt": b"second\n"}))


@cache
def models() -> dict[str, bytes]:
    """A small fitted model of each kind that is saved."""
    from scipy.sparse import csr_matrix  # as all below: only where models are asked for

    from sdretrieval.learn.classify.local_logistic import LocalLogisticRegression
    from sdretrieval.learn.classify.saved_models import save_classifier
    from sdretrieval.learn.classify.text_classifier import train
    from sdretrieval.learn.evolving.estimators import SSLE
    from sdretrieval.learn.evolving.run import Words, save_run
    from sdretrieval.learn.lcsc.model import LocalContextSparseCoding
    from sdretrieval.learn.tracking.state import save_tracker

    rng = np.random.default_rng(0)
    X, y = csr_matrix(rng.poisson(0.7, (24, 9)).astype(float)), np.array(["a", "b"] * 12)
    found = {}
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(name)
        for model in ("sd", "multinomial"):
            save_classifier(train(corpus_of(X, y), model), folder / model)
        LocalLogisticRegression(bandwidth=20.0).fit(X, y, np.arange(24.0)).save(folder / "local-logistic")
        evolving = SSLE().fit(X, y, frames=np.arange(24) // 6)
        words = Words({f"w{i}": i for i in range(9)}, np.ones(9), 24, "x")
        save_run(folder / "evolving", evolving, words)
        themes = LocalContextSparseCoding(2, max_iter=2, random_state=0).fit([text_of(i).split() for i in range(6)])
        themes.save(folder / "themes")
        for kind in ("sd", "nb"):
            save_tracker(folder / f"tracker-{kind}", small_tracker(kind), {"lengths": [0, 0]})
        for path in folder.iterdir():
            found[path.name] = path.read_bytes()
    return found


def corpus_of(X: Any, y: np.ndarray) -> Any:
    from sdretrieval.learn.labelled import LabelledCorpus  # as above

    return LabelledCorpus(
        docids=[f"d{i}" for i in range(X.shape[0])],
        counts=X,
        vocabulary=[f"w{j}" for j in range(X.shape[1])],
        labels=tuple((label,) for label in y.tolist()),
        times=np.arange(X.shape[0]) * 86_400_000,
        fields={},
    )


def small_tracker(kind: str) -> Any:
    from sdretrieval.learn.tracking import Forgetting, Tracker, make_model  # as above

    forgetting = Forgetting("tricube", 20_000.0) if kind == "nb" else None
    tracker = Tracker(make_model(kind), adapt_threshold=-1e9, forgetting=forgetting)
    tracker.add_story("q", [tracker.background.document("q", ["s1-1", "tea"])])
    tracker.expect_seed("later", "d3")
    for i in range(4):
        tracker.process(tracker.background.document(f"e{i}", text_of(i).split(), 1000 * i))
    tracker.n_seen = 0
    return tracker


# -- readers -------------------------------------------------------------------------------------------------------


def read_corpus(path: Path, **options: Any) -> tuple[list[str], int]:
    """The documents' ids and how many problems were told of, one of them by an error or all of them by --skip-bad."""
    problems = Problems(skip=True)
    reader = Reader(problems=problems, **options)
    ids = [document.docid for document in reader.read([path])]
    with suppress(InputError):
        for _ in Reader(date="date", **options).read([path]):
            pass
        assert not problems.count, "a problem that is skipped is an error where nothing is skipped"
    return ids, problems.count + len(reader.ignored)


def read_any_topics(path: Path) -> None:
    for format in (None, *TOPIC_FORMATS):
        for field in ("title", "title+desc"):
            with suppress(SdretrievalError):
                read_topics(path, format, field)


known_rankers = cache(rankers)


def read_a_profile(path: Path) -> None:
    read_profile(str(path))
    for name in ("sd3", "ql", "bm25"):
        with suppress(SdretrievalError):
            profile_settings(str(path), known_rankers()[name])


def read_stream(path: Path) -> None:
    from sdretrieval.learn.tracking.stream_background import Background  # only where trackers are asked for
    from sdretrieval.learn.tracking.streams import jsonl_stream

    for problems in (Problems(skip=True), Problems()):
        with path.open("rb") as stream:
            for _ in jsonl_stream(stream, Background(), str.split, problems=problems):
                pass


def read_decisions(path: Path) -> None:
    from sdretrieval.learn.tracking import decisions  # only where trackers are asked for

    decisions.read_decisions(path)


def resume_tracker(path: Path) -> None:
    """The tracker of a state, and what it makes of documents."""
    from sdretrieval.learn.tracking.state import load_tracker  # only where trackers are asked for

    tracker, _ = load_tracker(path)
    for i in range(3):
        tracker.process(tracker.background.document(f"x{i}", text_of(i).split(), 9000 + i))


def resume_journal(path: Path) -> None:
    from sdretrieval.learn.tracking.state import CHECKPOINT, StateFolder  # only where trackers are asked for

    folder = path.parent / "state"
    folder.mkdir(exist_ok=True)
    (folder / CHECKPOINT).write_bytes(models()["tracker-sd"])
    (folder / "journal.jsonl").write_bytes(path.read_bytes())
    with StateFolder(folder) as state:
        state.resume()


def classify(path: Path) -> None:
    from scipy.sparse import csr_matrix  # only where models are asked for

    from sdretrieval.learn.classify.saved_models import load_classifier

    new = corpus_of(csr_matrix(np.eye(9)), np.array(["a"] * 9))
    load_classifier(path).predict(new)


def predict(path: Path) -> None:
    from scipy.sparse import csr_matrix  # only where models are asked for

    from sdretrieval.learn.classify.local_logistic import LocalLogisticRegression  # only where models are asked for

    model = LocalLogisticRegression.load(path)
    model.predict(csr_matrix((2, model.n_features_in_)), np.array([3.0, 40.0]))


def evolve(path: Path) -> None:
    from sdretrieval.learn.evolving.run import load_run  # only where models are asked for

    model, _ = load_run(path)
    if len(model.seen_) > 1:
        model.decision_function(np.ones((2, model.n_features_in_)))


def draw_themes(path: Path) -> None:
    from sdretrieval.learn.lcsc.model import LocalContextSparseCoding  # only where models are asked for

    LocalContextSparseCoding.load(path).transform([text_of(1).split()])


@dataclass
class Target:
    """A reader, the name of its file, and what it is given."""

    file: str
    read: Callable[[Path], Any]
    make_seeds: Callable[[], list[bytes]]
    kind: str = "text"  # how to alter it: text, json lines, bytes, saved
    tool: str = ""  # that says whether an archive is whole

    @cached_property
    def seeds(self) -> list[bytes]:
        return self.make_seeds()


def fixed(*seeds: bytes | str) -> Callable[[], list[bytes]]:
    found = [seed.encode() if isinstance(seed, str) else seed for seed in seeds]
    return lambda: found


def _trace(path: Path) -> None:
    closing(Trace(path, IDENTITY, ["1", "2"])).__exit__()


def _ciff() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        counts = np.array([[(7 * d + 3 * w) % 5 for w in range(len(WORDS))] for d in range(6)])
        write_ciff(Path(folder, "a.ciff"), Snapshot.from_counts(counts, WORDS))
        return Path(folder, "a.ciff").read_bytes()


TARGETS: dict[str, Target] = {
    "jsonl": Target("a.jsonl", read_corpus, fixed(JSONL), "json"),
    "json": Target("a.json", read_corpus, fixed(json.dumps(RECORDS), json.dumps(RECORDS, indent=1), JSONL), "json"),
    "sgml": Target("a.trec", read_corpus, fixed(SGML)),
    "csv": Target("a.csv", read_corpus, fixed(CSV)),
    "tsv": Target("a.tsv", read_corpus, fixed(TSV)),
    "ciff": Target("a.ciff", partial(read_corpus, format="ciff"), lambda: [_ciff()], "bytes"),
    "text": Target("a.txt", read_corpus, fixed(text_of(1))),
    "html": Target("a.html", read_corpus, fixed(PAGE)),
    "tar": Target("a.tar", read_corpus, lambda: TARS, "bytes", "tar"),
    "zip": Target(
        "a.zip",
        read_corpus,
        lambda: [zip_of(MEMBERS, kind) for kind in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2)],
        "bytes",
        "unzip",
    ),
    "topics": Target("topics", read_any_topics, fixed(*TOPICS.values())),
    "topics-gz": Target("topics.gz", read_any_topics, lambda: [_gzip(t.encode()) for t in TOPICS.values()], "bytes"),
    "run": Target("run.trec", read_run, fixed(RUN)),
    "run-gz": Target("run.gz", read_run, lambda: [_gzip(RUN), in_pieces(_gzip, RUN), bz2.compress(RUN)], "bytes"),
    "qrels": Target("qrels", read_qrels, fixed(QRELS)),
    "times": Target("times.tsv", lambda path: (read_times(path), read_document_times(path)), fixed(TIMES)),
    "profile": Target("profile.json", read_a_profile, fixed(PROFILE), "json"),
    "trace": Target("trace.jsonl", _trace, fixed(TRACE), "json"),
    "expansion": Target(
        "q.jsonl", lambda path: (read_terms(path), read_expanded_queries(path)), fixed(EXPANSIONS), "json"
    ),
    "expanded": Target("q.jsonl", read_expanded_queries, fixed(EXPANSIONS), "json"),
    "manifest": Target("manifest.json", read_manifest, fixed(MANIFEST), "json"),
    "documents": Target("docs.jsonl", lambda path: read_documents(path, ["d1", "d2"]), fixed(JSONL), "json"),
    "decisions": Target("decisions.jsonl", read_decisions, fixed(DECISIONS, RUN), "json"),
    "stream": Target("stream.jsonl", read_stream, fixed(JSONL), "json"),
    "journal": Target("journal.jsonl", resume_journal, fixed(JOURNAL), "json"),
    "tracker": Target(
        "s.tracker", resume_tracker, lambda: [models()["tracker-sd"], models()["tracker-nb"]], "saved:tracker"
    ),
    "classifier": Target("m.sdm", classify, lambda: [models()["sd"], models()["multinomial"]], "saved:classifier"),
    "local-logistic": Target("m.llr", predict, lambda: [models()["local-logistic"]], "saved"),
    "evolving": Target("m.run", evolve, lambda: [models()["evolving"]], "saved"),
    "themes": Target("m.themes", draw_themes, lambda: [models()["themes"]], "saved"),
}
for _ending, _compress in COMPRESS.items():
    TARGETS[f"tar-{_ending}"] = Target(
        f"a.tar.{_ending}",
        read_corpus,
        partial(lambda pack: [*map(pack, TARS), in_pieces(pack, TARS[0])], _compress),
        "bytes",
        "tar",
    )
    TARGETS[f"jsonl-{_ending}"] = Target(
        f"a.jsonl.{_ending}",
        read_corpus,
        partial(lambda pack: [pack(JSONL), in_pieces(pack, JSONL)], _compress),
        "bytes",
        {"gz": "gzip", "bz2": "bzip2", "xz": "xz"}[_ending],
    )

# -- alterations ---------------------------------------------------------------------------------------------------

ODD = [
    b"\0", b"\xff", b"\xed\xa0\x80", b"\x1b[31m", b"\xe2\x80\xa8", b"\r", b"\n", b"\t", b'"', b"'", b"<!", b"<!--",
    b"<", b">", b"</", b"&#x110000;", b"&#0;", b"&", b"{", b"[", b"}", b"]", b",", b":", b"null", b"true", b"NaN",
    b"-Infinity", b"1e999", b"-1", b"0", b"1" * 25, b"9" * 5000, b'"\\ud800"', b"[" * 3000, b'{"a":' * 3000,
    b"<DOC>", b"</DOC>", b"<top>", b"<title>", b".I", b".W", b"Q0", b"2020-13-45", b"99999999999999999999",
    b"\xf0\x9f\x98\x80",
]  # fmt: skip
ODD_VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 10**12, 10**25, 10**400, -(2**63), 0.5, 1e308, float("nan"), float("inf"), "", "x",
    "\ud800", "\x1b[2J", "a" * 300, [], {}, [[]], [1, "x", None], {"a": {"b": 1}}, "1e999", "2020-01-01",
]  # fmt: skip


def altered_bytes(data: bytes, dice: random.Random, others: list[bytes]) -> bytes:
    found = bytearray(data)
    for _ in range(dice.choice((1, 1, 1, 2, 4))):
        place = dice.randrange(len(found) + 1)
        end = min(len(found), place + dice.choice((1, 2, 8, 64, 512, 1024)))
        match dice.randrange(9):
            case 0 if place < len(found):
                found[place] ^= 1 << dice.randrange(8)
            case 1 if place < len(found):
                found[place] = dice.randrange(256)
            case 2:
                del found[place:end]
            case 3:
                found[place:place] = found[place:end]
            case 4:
                found[place:place] = dice.choice(ODD)
            case 5:
                del found[place:]
            case 6:
                found[place:] = dice.choice(others)[dice.randrange(len(data) + 1) :]
            case 7:
                found[place:place] = dice.choice((b"<!", b"[", b" ", b"<DOC ", b"<b>", b"\n")) * dice.choice((9, 3000))
            case _:
                found[place:end] = bytes(dice.randrange(256) for _ in range(end - place))
    return bytes(found)


def altered_value(value: Any, dice: random.Random) -> Any:
    """With one value somewhere in it another."""
    if isinstance(value, dict | list) and value and dice.random() < 0.85:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        key = dice.choice(keys)
        changed = dict(value) if isinstance(value, dict) else list(value)
        if dice.random() < 0.1:
            del changed[key]
        else:
            changed[key] = altered_value(value[key], dice)
        return changed
    return dice.choice(ODD_VALUES)


def altered_json(data: bytes, dice: random.Random, others: list[bytes]) -> bytes:
    """Sound JSON that says something else; where the seed is none, altered bytes."""
    if dice.random() < 0.4:
        return altered_bytes(data, dice, others)
    lines = data.decode().splitlines(keepends=True)
    try:
        if dice.random() < 0.5 and len(lines) > 1:
            i = dice.randrange(len(lines))
            lines[i] = json.dumps(altered_value(json.loads(lines[i]), dice)) + "\n"
            return "".join(lines).encode()
        return json.dumps(altered_value(json.loads(data), dice)).encode()
    except ValueError:
        return altered_bytes(data, dice, others)


def altered_saved(data: bytes, dice: random.Random, others: list[bytes], path: Path) -> bytes:
    """A file whose checksums are right and whose header or arrays are not."""
    if dice.random() < 0.2:
        return altered_bytes(data, dice, others)
    path.write_bytes(data)
    with zipfile.ZipFile(path) as archive:
        kind = json.loads(archive.read("header.json"))["kind"]
    header, arrays = load_arrays(path, kind)
    for _ in range(dice.choice((1, 1, 2))):
        if dice.random() < 0.5 or not arrays:
            header = altered_value(header, dice)
            header = header if isinstance(header, dict) else {}
        else:
            name = dice.choice(sorted(arrays))
            arrays[name] = altered_array(arrays[name], dice)
    save_arrays(path, kind, header, arrays)
    return path.read_bytes()


def altered_array(array: np.ndarray, dice: random.Random) -> np.ndarray:
    changed = array.copy()
    match dice.randrange(7):
        case 0 if changed.size and changed.dtype.kind in "if":
            with suppress(OverflowError, ValueError):
                changed.flat[dice.randrange(changed.size)] = dice.choice((-1, 10**6, 2**31 - 1, -(2**31)))
        case 1 if changed.size and changed.dtype.kind == "f":
            changed.flat[dice.randrange(changed.size)] = dice.choice((np.nan, np.inf, -np.inf, 1e308))
        case 2:
            return changed[:-1]
        case 3:
            return np.concatenate([changed, changed])
        case 4:
            return (
                changed.astype(dice.choice(("f4", "i8", "U3", "u1", "S2", "?")))
                if changed.dtype.kind in "biu"
                else changed
            )
        case 5:
            return changed.reshape(1, *changed.shape)
        case _:
            return np.zeros(0, changed.dtype)
    return changed


# -- what tools say ------------------------------------------------------------------------------------------------


def tool_count(tool: str, path: Path) -> int | None:
    """How many documents there are by the archive's own tool; None where it calls the archive damaged, -1 where it is
    not installed."""
    if shutil.which(tool) is None:
        return -1
    command = {"tar": ["tar", "-tvf"], "unzip": ["unzip", "-P", "x", "-tqq"]}.get(tool, [tool, "-dc"])
    command.append(str(path))
    plain = {**os.environ, "LC_ALL": "C"}
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE, env=plain)
    except subprocess.TimeoutExpired:  # unzip runs for ever over some
        return None
    if done.returncode:
        return None
    if tool == "unzip":
        with zipfile.ZipFile(path) as archive:
            return sum(not member.is_dir() for member in archive.infolist())
    if tool == "tar":
        return sum(line.startswith(b"-") for line in done.stdout.splitlines())
    return sum(bool(line.strip()) for line in done.stdout.split(b"\n"))


# -- running -------------------------------------------------------------------------------------------------------


class Hang(BaseException):
    pass


def _stop(signum: int, frame: object) -> None:
    raise Hang


def chosen_seed(name: str, number: int) -> int:
    return random.Random(f"{number} of {name}").randrange(len(TARGETS[name].seeds))


def case_bytes(name: str, number: int, path: Path) -> bytes:
    target, dice = TARGETS[name], random.Random(f"{name}/{number}")
    seeds = target.seeds
    data = seeds[chosen_seed(name, number)]
    if target.kind.startswith("saved"):
        return altered_saved(data, dice, seeds, path)
    return (altered_json if target.kind == "json" else altered_bytes)(data, dice, seeds)


@cache
def ids_of_seed(name: str, which: int) -> frozenset[str]:
    """The documents of an archive before it was altered."""
    target = TARGETS[name]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / target.file
        path.write_bytes(target.seeds[which])
        return frozenset(target.read(path)[0])


def run_case(name: str, number: int, folder: Path, *, ask_tools: bool = True) -> str:
    """What came of it: read, refused, or what is wrong with the reader."""
    target = TARGETS[name]
    path = folder / target.file
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        path.write_bytes(case_bytes(name, number, path))
        signal.signal(signal.SIGALRM, _stop)
        signal.setitimer(signal.ITIMER_REAL, PATIENCE)
        began = time.process_time()
        try:
            found = target.read(path)
        except SdretrievalError:
            return "refused"
        except Hang:
            return f"hang: over {PATIENCE} s"
        except BaseException as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            return f"traceback: {type(error).__name__} in {Path(where.filename).name}:{where.lineno}: {str(error)[:90]}"
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        if time.process_time() - began > SECONDS:
            return f"hang: over {SECONDS} s"
    if target.tool and ask_tools and not found[1]:
        count = tool_count(target.tool, path)
        if count is None and not ids_of_seed(name, chosen_seed(name, number)) <= set(found[0]):
            return f"lost: {target.tool} calls it damaged, {len(found[0])} documents and no word"
        if count is not None and count > len(found[0]):
            return f"lost: {target.tool} finds {count} documents, here are {len(found[0])} and no word"
    return "read"


def warm_up(name: str, folder: Path) -> None:
    """Read the seeds as they are: imports, compiled loops and Java are not what is timed."""
    for seed in TARGETS[name].seeds:
        path = folder / TARGETS[name].file
        path.write_bytes(seed)
        with warnings.catch_warnings(), suppress(InputError):
            warnings.simplefilter("ignore")
            TARGETS[name].read(path)


def _work(name: str, numbers: range, pipe: int) -> None:
    """In a process of its own, which may crash: one line for each case begun and ended."""
    with tempfile.TemporaryDirectory() as folder, os.fdopen(pipe, "w", buffering=1) as out:
        warm_up(name, Path(folder))
        for number in numbers:
            out.write(f"{number}\n")
            out.write(f"{number}\t{run_case(name, number, Path(folder))}\n")
        out.write(f"memory\t{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024}\n")


def run_apart(name: str, numbers: range) -> Iterator[tuple[int, str]]:
    """The cases of one reader, and what came of each; after a crash it goes on with the next."""
    while numbers:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            with suppress(BrokenPipeError):
                _work(name, numbers, writer)
            os._exit(0)
        os.close(writer)
        begun = numbers.start - 1
        with os.fdopen(reader) as lines:
            for line in lines:
                number, _, outcome = line.rstrip("\n").partition("\t")
                if number == "memory":
                    yield -1, outcome
                elif outcome:
                    yield int(number), outcome
                else:
                    begun = int(number)
        _, status = os.waitpid(child, 0)
        if not status:
            return
        yield begun, f"crash: status {status}"
        numbers = range(begun + 1, numbers.stop)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", type=int, nargs="?", default=10_000, help="in all (default: %(default)s)")
    parser.add_argument("readers", nargs="*", help=f"of: {', '.join(TARGETS)} (default: all)")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    args = parser.parse_args()
    chosen = args.readers or list(TARGETS)
    if any(TARGETS[name].kind.startswith("saved") or name == "journal" for name in chosen):
        models()  # once, for all processes
    total, worst = Counter[str](), 0
    bad: list[str] = []
    for name in chosen:
        count, began, memory = Counter[str](), time.monotonic(), 0
        each = range(args.first, args.first + -(-args.cases // len(chosen)))
        for number, outcome in run_apart(name, each):
            if number < 0:
                memory = int(outcome)
                continue
            count[outcome.partition(":")[0]] += 1
            if outcome not in ("read", "refused"):
                bad.append(f"{name}/{number}: {outcome}")
                print(f"  {bad[-1]}", flush=True)
        total += count
        worst = max(worst, memory)
        told = ", ".join(f"{outcome} {n:,}" for outcome, n in sorted(count.items()))
        print(f"{name:15s} {told} ({time.monotonic() - began:.0f} s, {memory} MB)", flush=True)
    wrong = ", ".join(f"{total[kind]:,} {kind}" for kind in ("crash", "traceback", "hang", "lost"))
    fine = f"{total['read']:,} read, {total['refused']:,} refused"
    print(f"{sum(total.values()):,} cases: {fine}; {wrong}; {worst} MB at most")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
