"""``sdretrieval track`` and ``sdretrieval tdt`` from end to end, through pipes, crashes and bad input."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from sdretrieval.collection.trec import read_run
from sdretrieval.core.errors import SdretrievalError
from sdretrieval.learn.tracking.decisions import Outputs

pytestmark = pytest.mark.java

# Words as they stand: the child processes need not wait for Lucene's analysis of each.
PLAIN = ("--language", "whitespace")


@pytest.fixture
def stream(collection, tmp_path: Path) -> Path:
    """The tiny collection's documents in time order."""
    lines = sorted(collection.documents.read_text().splitlines(), key=lambda line: json.loads(line)["date"])
    path = tmp_path / "stream.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path


def flags(**given: object) -> list[object]:
    return [word for name, value in given.items() for word in (f"--{name.replace('_', '-')}", value)]


def decisions(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


def told(process, out: Path, lines: int) -> None:
    """Wait until so many decisions are in the file."""
    deadline = time.monotonic() + 300
    while not (out.exists() and len(out.read_text().splitlines()) == lines):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.02)


def test_a_file_and_an_index_tell_the_same(collection, stream, tmp_path, typed) -> None:
    common = ("track", "--topics", collection.topics, "--model", "rm", "--adapt-threshold", "0.002")
    by_file = typed(*common, "--input", stream)
    by_index = typed(*common, "--index", collection.index)
    assert (by_file.code, by_index.code) == (0, 0), by_file.err + by_index.err
    first, second = decisions(by_file.out), decisions(by_index.out)
    assert len(first) == 30 * 6
    # Documents of one day may come in either order; all were scored before anything of them was learnt.
    assert {(d["docid"], d["topic"]) for d in first} == {(d["docid"], d["topic"]) for d in second}
    assert "30 documents x 6 stories: 180 scores" in by_file.err


def test_decisions_find_the_subject(collection, stream, tmp_path, typed) -> None:
    run, out = tmp_path / "run.trec", tmp_path / "d.jsonl"
    files = flags(topics=collection.topics, input=stream, background=collection.index, output=out, run=run)
    outcome = typed("track", *files, "--hits", 5, "--tag", "mine")
    assert outcome.code == 0, outcome.err
    assert outcome.out == ""
    found = read_run(run)
    assert found.tag == "mine"
    assert {len(found[qid]) for qid in found} == {5}
    for i, qid in enumerate("123456"):  # five documents to a subject, the first two closest to its query
        assert found[qid].docids[0] in (f"doc{5 * i + 1:02d}", f"doc{5 * i + 2:02d}")
    assert not Path(f"{run}.part").exists()
    measured = typed("tdt", collection.qrels, out, "-q", "--det", tmp_path / "det.png")
    assert measured.code == 0, measured.err
    lines = measured.out.splitlines()
    assert lines[0].split()[:3] == ["system", "topics", "MinCost"]
    assert float(lines[1].split()[2]) < 0.6
    assert len(lines) == 3 + 1 + 6
    assert (tmp_path / "det.png").read_bytes().startswith(b"\x89PNG")


def test_seeds_feedback_and_forgetting(collection, stream, tmp_path, typed) -> None:
    """A topic begins after its seed; a marked document is learnt from; the seed is scored for no topic of its own."""
    order = [json.loads(line)["id"] for line in stream.read_text().splitlines()]
    (tmp_path / "seeds").write_text(f"t 0 {order[4]} 1\nu 0 {order[9]} 1\nnever 0 nobody 1\n")
    (tmp_path / "marks").write_text(f"t 0 {order[12]} 1\n")
    files = flags(seeds=tmp_path / "seeds", feedback=tmp_path / "marks", input=stream)
    outcome = typed("track", *files, "--forget", "tricube", "--bandwidth", "90d")
    assert outcome.code == 0, outcome.err
    found = decisions(outcome.out)
    assert [d["docid"] for d in found if d["topic"] == "t"] == order[5:]
    assert [d["docid"] for d in found if d["topic"] == "u"] == order[10:]
    assert [d["docid"] for d in found if d["adapted"]] == [order[12]]
    assert "no seed came for 1 stories: never" in outcome.err


def test_seeds_may_lie_in_the_background(collection, stream, tmp_path, typed) -> None:
    (tmp_path / "seeds").write_text("t 0 doc01 1\nt 0 doc02 1\n")
    outcome = typed("track", "--seeds", tmp_path / "seeds", "--input", stream, "--background", collection.index)
    assert outcome.code == 0, outcome.err
    assert len(decisions(outcome.out)) == 30
    best = max(decisions(outcome.out), key=lambda d: d["score"])
    assert best["docid"] in ("doc01", "doc02")


def test_only_on_topic_decisions_with_a_threshold(collection, stream, tmp_path, typed) -> None:
    common = ("track", "--topics", collection.topics, "--input", stream, "--model", "tfidf")
    everything = decisions(typed(*common).out)
    some = decisions(typed(*common, "--threshold", "0.2").out)
    assert [d["score"] for d in some] == [d["score"] for d in everything if d["score"] >= 0.2]
    assert 0 < len(some) < len(everything)
    assert all(d["on_topic"] for d in some)
    every = decisions(typed(*common, "--threshold", "0.2", "--emit", "all").out)
    assert [d["on_topic"] for d in every] == [d["score"] >= 0.2 for d in every]


def test_a_decision_comes_before_the_next_document_is_sent(collection, stream, started) -> None:
    """As with `tail -f`: nothing waits for a buffer to fill."""
    process = started("track", "--topics", collection.topics, "--threshold", "-1e9", *PLAIN, stdin=-1, bufsize=1)
    for line in stream.read_text().splitlines()[:5]:
        process.stdin.write(line + "\n")
        process.stdin.flush()
        watch = threading.Timer(300, process.kill)  # if nothing comes, reading ends with the process
        watch.start()
        found = [json.loads(process.stdout.readline()) for _ in range(6)]
        watch.cancel()
        assert {d["docid"] for d in found} == {json.loads(line)["id"]}
    _, err = process.communicate(timeout=300)
    assert process.returncode == 0, err


def test_killed_and_started_again_is_never_killed(collection, stream, tmp_path, started, typed) -> None:
    """kill -9 in mid-stream, the same command again on the same stream: the files are those of one undisturbed run."""

    def command(folder: Path) -> list:
        files = flags(output=folder / "d.jsonl", run=folder / "r.trec", state=folder / "state", checkpoint_every=5)
        return ["track", "--topics", collection.topics, "--adapt-threshold", "0.001", *files, *PLAIN]

    killed_after = 18
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    lines = stream.read_text().splitlines(keepends=True)
    assert typed(*command(whole), "--input", stream).code == 0
    process = started(*command(broken), stdin=-1, bufsize=1)
    for line in lines[:killed_after]:
        process.stdin.write(line)
    process.stdin.flush()
    out = broken / "d.jsonl"
    told(process, out, 6 * killed_after)
    os.kill(process.pid, signal.SIGKILL)
    process.wait(60)
    with open(out, "ab") as torn:  # as if it had died while writing decisions it had not yet noted
        torn.write(b'{"docid": "half a li')
    assert not (broken / "r.trec").exists()
    with stream.open() as feed:
        again = started(*command(broken), stdin=feed)
        _, err = again.communicate(timeout=300)
    assert again.returncode == 0, err
    assert f"going on after {killed_after} documents" in err
    for name in ("d.jsonl", "r.trec"):
        assert (broken / name).read_bytes() == (whole / name).read_bytes()


def test_an_index_goes_on_with_the_same_last_bits(collection, tmp_path, monkeypatch, typed) -> None:
    """Stopped before its first checkpoint of the stream: words keep the numbers that decide the order of sums."""
    common = ("track", "--index", collection.index, "--topics", collection.topics, "--adapt-threshold", "-100")
    whole = typed(*common, "--output", tmp_path / "whole.jsonl")
    assert whole.code == 0, whole.err
    state = ("--state", tmp_path / "state", "--output", tmp_path / "parts.jsonl")
    write, count = Outputs.write, iter(range(1000))

    def stopped(outputs, step):
        if next(count) == 12:
            raise SdretrievalError("stopped")
        return write(outputs, step)

    with monkeypatch.context() as patched:
        patched.setattr(Outputs, "write", stopped)
        assert typed(*common, *state).code == 2
    again = typed(*common, *state)
    assert "going on after 13 documents" in again.err
    assert (tmp_path / "parts.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_a_continued_stream_and_new_topics(collection, stream, tmp_path, typed) -> None:
    """What is new may be fed alone; topics that were not known begin then; other flags are refused."""
    lines = stream.read_text().splitlines(keepends=True)
    (tmp_path / "one.jsonl").write_text("".join(lines[:20]))
    (tmp_path / "two.jsonl").write_text("".join(lines[20:]))
    (tmp_path / "more.tsv").write_text(collection.topics.read_text() + "new\tsleeper carriages\n")
    state = ("--state", tmp_path / "state", "--model", "rm")
    whole = typed("track", "--topics", collection.topics, "--input", stream, "--model", "rm")
    first = typed("track", "--topics", collection.topics, "--input", tmp_path / "one.jsonl", *state)
    second = typed("track", "--topics", tmp_path / "more.tsv", "--input", tmp_path / "two.jsonl", *state)
    assert second.code == 0, second.err
    old = [line for line in second.out.splitlines() if json.loads(line)["topic"] != "new"]
    assert first.out.splitlines()[: 20 * 6] + old[-60:] == whole.out.splitlines()
    assert len(old) == 10 * 6  # a clean end needs no document told again
    other = typed("track", "--topics", collection.topics, "--input", stream, "--state", tmp_path / "state")
    assert other.code == 2
    assert "was made with model 'rm', now it is 'sd'" in other.err
    wrong = tmp_path / "wrong.jsonl"
    wrong.write_text(lines[0] + "".join(lines[5:]))
    mixed = typed("track", "--topics", collection.topics, "--input", wrong, *state)
    assert mixed.code == 2
    assert "and ends after 26 documents; the state has seen 30" in mixed.err
    wrong.write_text("".join([*lines[:29], lines[28].replace("doc", "Doc")]))
    mixed = typed("track", "--topics", collection.topics, "--input", wrong, *state)
    assert mixed.code == 2
    assert "where the state has seen" in mixed.err


def test_interrupted_the_run_so_far_is_written(collection, stream, tmp_path, started) -> None:
    """Ctrl-C is how `tail -f` ends."""
    run, out = tmp_path / "r.trec", tmp_path / "d.jsonl"
    process = started(
        "track", "--topics", collection.topics, "--run", run, "--output", out, *PLAIN, stdin=-1, bufsize=1
    )
    process.stdin.write("".join(stream.read_text().splitlines(keepends=True)[:4]))
    process.stdin.flush()
    told(process, out, 24)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 130, err
    assert sum(len(ranking) for ranking in read_run(run).values()) == 24
    assert not Path(f"{run}.part").exists()


def test_a_run_grows_with_its_state_and_decisions_may_go_elsewhere(collection, stream, tmp_path, typed) -> None:
    lines = stream.read_text().splitlines(keepends=True)
    files = flags(run=tmp_path / "r.trec", state=tmp_path / "state", input=tmp_path / "part.jsonl")
    common = ("track", "--topics", collection.topics, "--model", "tfidf", *files)
    for i in range(3):
        (tmp_path / "part.jsonl").write_text("".join(lines[10 * i : 10 * i + 10]))
        assert typed(*common, "--output", tmp_path / f"day{i}.jsonl").code == 0
        assert sum(len(ranking) for ranking in read_run(tmp_path / "r.trec").values()) == 60 * (i + 1)
    assert [len((tmp_path / f"day{i}.jsonl").read_text().splitlines()) for i in range(3)] == [60, 60, 60]
    (tmp_path / "day2.jsonl").write_text("")
    lost = typed(*common, "--output", tmp_path / "day2.jsonl")
    assert lost.code == 2
    assert "it is not the file the tracker wrote" in lost.err


def test_bad_lines_name_their_place_or_are_counted(collection, stream, tmp_path, typed) -> None:
    lines = stream.read_text().splitlines(keepends=True)
    bad = tmp_path / "bad.jsonl"
    for text, why in (
        ("{oops\n", "not JSON"),
        ('{"contents": "no id"}\n', "no field 'id'"),
        ('{"id": "x", "contents": "y", "date": "someday"}\n', "not a time"),
        ("[1]\n", "not an object"),
        ("\xff".encode("latin-1").decode("latin-1") + "\n", "not JSON"),
    ):
        bad.write_text("".join([*lines[:2], text, *lines[2:4]]))
        outcome = typed("track", "--topics", collection.topics, "--input", bad, "--model", "rm")
        assert outcome.code == 2
        assert f"{bad}:3: " in outcome.err and why in outcome.err
        skipped = typed("track", "--topics", collection.topics, "--input", bad, "--model", "rm", "--skip-bad")
        assert skipped.code == 0
        assert len(decisions(skipped.out)) == 4 * 6
        assert "1 bad lines skipped; the first:" in skipped.err


def test_flags_that_cannot_be_meant(collection, tmp_path, refused, typed) -> None:
    topics = ("--topics", collection.topics, "--input", collection.documents)
    assert "no story to follow" in refused("track", "--input", collection.documents)
    for words, why in {
        "--bandwidth 7d": "--bandwidth says nothing",
        "--labelled": "--labelled says nothing",
        "--hits 5": "--hits says nothing",
        "--emit on-topic": "needs a threshold",
        "--emit none --run r.trec": "emits nothing",
        "--grow": "--grow is for",
        "--set mu=3": "no parameter 'mu'",
        "--threshold 2 --adapt-threshold 1": "is below threshold",
        "--forget sudden": "no kernel",
    }.items():
        assert why in refused("track", *topics, *words.split())
    assert "no such file" in refused("track", "--topics", collection.topics, "--input", tmp_path / "none")
    told = refused("track", *topics, "--background", collection.index, "--stemmer", "krovetz")
    assert "was analysed as language en, stemmer porter, stop words removed; the flags: language en, stemmer kr" in told
    (tmp_path / "stop.tsv").write_text("1\tthe of and\n")
    assert "no word left" in refused("track", "--topics", tmp_path / "stop.tsv", "--input", collection.documents)
    assert typed("track", *topics, "--threshold", "nan").code == 2


# -- tdt -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def two_runs(tmp_path: Path) -> tuple[Path, Path, Path]:
    """Hand-made: of 100 documents two are relevant; run A lists them at ranks 1 and 3, run B at 1 and 2."""
    (tmp_path / "qrels").write_text("t 0 r1 1\nt 0 r2 1\n")
    a = "t Q0 r1 1 3.0 A\nt Q0 n1 2 2.0 A\nt Q0 r2 3 1.0 A\n"
    b = "t Q0 r1 1 3.0 B\nt Q0 r2 2 2.0 B\n"
    (tmp_path / "a.trec").write_text(a)
    (tmp_path / "b.trec").write_text(b)
    return tmp_path / "qrels", tmp_path / "a.trec", tmp_path / "b.trec"


def test_costs_of_runs_by_hand(two_runs, typed) -> None:
    """A: at rank 3, no miss and 1 of 98 alarms: 4.9/98 = .05. B: 0."""
    qrels, a, b = two_runs
    outcome = typed("tdt", qrels, a, b, "--documents", 100, "--output-format", "jsonl", "-q", "--baseline", a)
    assert outcome.code == 0, outcome.err
    records = [json.loads(line) for line in outcome.out.splitlines()]
    assert records[0]["min_cost"] == pytest.approx(0.05)
    assert records[0]["threshold"] == 1.0
    counted = {"system": "a", "topic": "t", "targets": 2, "others": 98, "p_miss": 0.0, "p_fa": pytest.approx(1 / 98)}
    cost = {"cost": pytest.approx(0.05), "own_min_cost": pytest.approx(0.05), "own_threshold": 1.0}
    assert records[1] == {**counted, **cost, "decided_cost": None}
    assert records[2]["min_cost"] == 0.0
    assert (records[-1]["better"], records[-1]["worse"]) == (1, 0)


def test_tdt_formats_and_points(two_runs, tmp_path, typed) -> None:
    qrels, a, b = two_runs
    table = typed("tdt", qrels, a, b, "--documents", 100, "--baseline", a).out
    assert "better/equal/worse" in table and "1/0/0" in table
    rows = typed(
        "tdt", qrels, a, "--documents", 100, "--output-format", "csv", "--det-points", tmp_path / "p.csv"
    ).out.splitlines()
    assert rows[0] == "system,topic,cost,p_miss,p_fa,own_min_cost"
    points = (tmp_path / "p.csv").read_text().splitlines()
    assert points[:2] == ["system,threshold,p_fa,p_miss", "a,inf,0.0,1.0"]
    assert len(points) == 5
    story = typed("tdt", qrels, a, "--documents", 100, "--weighting", "story", "--output-format", "jsonl").out
    assert json.loads(story)["min_cost"] == pytest.approx(0.05)  # one topic: the same


def test_tdt_bad_input(two_runs, tmp_path, refused) -> None:
    qrels, a, _ = two_runs
    assert "how many documents were not listed" in refused("tdt", qrels, a)
    assert "cannot hold" in refused("tdt", qrels, a, "--documents", 2)
    assert "must be at least 1" in refused("tdt", qrels, a, "--documents", 0)
    assert "p_target" in refused("tdt", qrels, a, "--documents", 9, "--p-target", 2)
    assert "a figure is" in refused("tdt", qrels, a, "--documents", 9, "--det", "x.gif")
    (tmp_path / "other").write_text("u 0 r1 1\n")
    assert "no story of it has an on-topic document" in refused("tdt", tmp_path / "other", a, "--listed")
    assert "neither a file nor one of the runs" in refused("tdt", qrels, a, "--listed", "--baseline", "zzz")
