"""``sdretrieval index`` as a new user meets it: output, exit code, and what is left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tarfile
import time
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import pytest


def tree(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def corpus(path: Path, count: int, words: int = 5) -> Path:
    with path.open("w") as stream:
        for i in range(count):
            text = " ".join(f"w{(i * 7919 + j * 104729) % 50021}" for j in range(words))
            record = {"id": f"d{i}", "contents": text, "date": f"2024-01-{i % 28 + 1:02d}"}
            stream.write(json.dumps(record) + "\n")
    return path


@pytest.fixture
def docs(tmp_path) -> Path:
    return corpus(tmp_path / "docs.jsonl", 5)


# In this process, without Java: everything that is refused -------------------------------------------------


@pytest.fixture
def index(refused):
    """``index("--input", …)``: a command that must be refused, and what it says."""
    return partial(refused, "index")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('{"id": "d9", "contents": "cut', "malformed JSON"),
        ('{"id": "d9"}', "no field 'contents'"),
        ('{"id": "d9", "contents": "naïve"}', "not utf-8 text: byte 0xef"),
        ('{"contents": "x"}', "no field 'id'"),
        ('{"id": "d2", "contents": "x"}', "document id 'd2' was already used at "),
        ('{"id": "d9", "contents": "x", "date": "soon"}', "field 'date': not a time: 'soon'"),
    ],
)
def test_bad_input_is_one_clear_error_and_leaves_nothing(tmp_path, docs, index, line, told):
    with docs.open("a", encoding="latin-1") as stream:
        stream.write(line + "\n")
    err = index("--input", docs, "--index", tmp_path / "ix" / "mine", "--date-field", "date")
    assert err.startswith(f"sdretrieval index: {tmp_path}/docs.jsonl:6: {told}")
    assert ("--encoding latin-1" in err) == ("utf-8" in told)
    assert tree(tmp_path) == ["docs.jsonl"]


def test_nothing_to_read_and_an_existing_index(tmp_path, docs, index):
    target = ["--index", tmp_path / "mine"]
    (tmp_path / "empty.jsonl").write_text("\n")
    assert "nowhere: no such file or folder" in index("--input", tmp_path / "nowhere", *target)
    assert "the corpus has no document to index" in index("--input", tmp_path / "empty.jsonl", *target)
    assert tree(tmp_path) == ["docs.jsonl", "empty.jsonl"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "segments_1").write_text("")
    assert "exists.\n  Pass --overwrite" in index("--input", docs, *target)


@pytest.mark.parametrize(
    "words",
    [
        "--input x",
        "--index x",
        "--input x --dataset y --index z",
        "--input x --index y --format word",
        "--input x --index y --language xx",
    ],
)
def test_wrong_options_are_usage_errors(words, typed):
    outcome = typed("index", *words.split())
    assert outcome.code == 2
    assert "usage: sdretrieval index" in outcome.err


def test_dataset_options(tmp_path, index):
    pytest.importorskip("ir_datasets")
    target = ["--index", tmp_path / "mine"]
    assert "ir_datasets knows no dataset 'no-such-thing'" in index("--dataset", "no-such-thing", *target)
    assert "a dataset knows its own" in index("--dataset", "vaswani", "--id-field", "x", *target)


# In processes of their own -------------------------------------------------------------------------------


@pytest.mark.java
def test_first_index_of_a_new_user(tmp_path, docs, started, ended):
    words = ["--input", docs, "--index", "indexes/mine", "--date-field", "date"]
    outcome = ended(started("index", *words, cwd=tmp_path))
    assert (outcome.code, outcome.err) == (0, "")  # no noise
    rows = dict(line.split(None, 1) for line in outcome.out.splitlines() if not line.startswith("unique"))
    assert rows["index"] == "indexes/mine"
    assert (rows["documents"], rows["tokens"], rows["undated"], rows["skipped"]) == ("5", "25", "0", "0")
    assert rows["dates"] == "2024-01-01T00:00:00Z .. 2024-01-05T00:00:00Z"
    assert len(list((tmp_path / "indexes" / "mine").glob("segments_*"))) == 1
    assert tree(tmp_path)[:3] == ["docs.jsonl", "indexes", "indexes/mine"]


@pytest.mark.java
def test_json_summary_skipped_and_hints(tmp_path, docs, typed):
    with docs.open("a") as stream:
        stream.write('{"id": "d9", "contents": "cut\n')
        stream.write('{"id": "d1", "contents": "again"}\n{"id": "e", "contents": ""}\n')
    (tmp_path / "notes.md").write_text("no document")
    outcome = typed("index", "--input", tmp_path, "--index", tmp_path / "mine", "--skip-bad", "--json")
    assert outcome.code == 0, outcome.err
    summary, err = json.loads(outcome.out), outcome.err
    assert (summary["documents"], summary["undated"], summary["skipped"], summary["empty"]) == (5, 5, 2, 1)
    assert summary["skipped_list"][1] == f"{docs}:7: document id 'd1' was already used at {docs}:2"
    assert "sdretrieval index: skipped 2 bad documents:" in err
    assert "left out 1 documents without text (e)" in err
    assert "ignored 1 files of unknown format" in err
    assert "--date-field date would give them times" in err


@pytest.mark.java
def test_every_format_through_the_command(tmp_path, typed):
    (tmp_path / "in").mkdir()
    for name, text in {
        "in/a.jsonl": '{"id": "json", "contents": "tea"}\n',
        "in/b.csv": "id,contents\ncsv,tea\n",
        "in/c.tsv": "id\tcontents\ntsv\ttea\n",
        "in/d.trec": "<DOC>\n<DOCNO>trec</DOCNO>\n<TEXT>tea</TEXT>\n</DOC>\n",
        "in/text.txt": "tea",
        "html.html": "<p>tea",
    }.items():
        (tmp_path / name).write_text(text)
    with tarfile.open(tmp_path / "in" / "e.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "html.html", "pages/html.html")
    outcome = typed("index", "--input", tmp_path / "in", "--index", tmp_path / "mine", "--json")
    assert outcome.code == 0, outcome.err
    summary = json.loads(outcome.out)
    assert [summary[name] for name in ("documents", "tokens", "terms")] == [6, 6, 1]


# A build that does not end by itself, so that a signal which comes late on a busy machine still comes in time.
NO_END = (
    "import time; from sdretrieval.index.lucene import indexing; indexing._statistics = lambda *given: time.sleep(600)"
)


@pytest.mark.java
@pytest.mark.parametrize(
    ("phase", "number", "code"), [("reading", signal.SIGINT, 130), ("indexing", signal.SIGTERM, 143)]
)
def test_interrupted(tmp_path, started, ended, phase, number, code):
    """Ctrl-C and SIGTERM, while reading and while Lucene works, leave the old index and nothing else."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "segments_1").write_text("old")
    source = tmp_path / "docs.jsonl"
    if phase == "reading":
        os.mkfifo(source)  # a reader waits on it for as long as we like
    else:
        corpus(source, 3000, words=400)
    words = ("--input", source, "--index", tmp_path / "mine", "--overwrite", "--format", "jsonl")
    process = started("index", *words, code=NO_END)
    with source.open("w") if phase == "reading" else nullcontext() as stream:
        if stream is not None:
            stream.write('{"id": "1", "contents": "x"}\n')
            stream.flush()
        wait_for(process, lambda: any(tmp_path.glob(f".mine.building/{'documents' if stream else 'index/*'}")))
        time.sleep(0.3)
        process.send_signal(number)
        outcome = ended(process)
    assert outcome.code == code, outcome
    assert "Traceback" not in outcome.err
    assert "Exception" not in outcome.err
    assert "nothing half-written was left behind" in outcome.err
    assert tree(tmp_path) == ["docs.jsonl", "mine", "mine/segments_1"]


def wait_for(process: subprocess.Popen, condition) -> None:
    deadline = time.monotonic() + 300
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.mark.java
def test_full_disk(tmp_path, started, ended):
    """Room for the documents, but not for Lucene's files (300 kB)."""
    pytest.importorskip("resource")
    source = corpus(tmp_path / "docs.jsonl", 3000, words=30)
    # The process limits itself: with the threads of a JVM in this one, nothing should run between fork and exec.
    limited = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000));"
        "from sdretrieval.index.lucene import indexing; indexing.DOCUMENTS_PER_SHARD = 500"
    )
    outcome = ended(started("index", "--input", source, "--index", tmp_path / "mine", code=limited))
    assert outcome.code == 2, outcome
    assert "no room left" in outcome.err
    assert "Free some space" in outcome.err
    assert "\tat " not in outcome.err  # no Java stack trace
    assert tree(tmp_path) == ["docs.jsonl"]


def test_a_messy_table_and_a_summary_of_what_became_of_it(tmp_path, typed):
    """In one command: semicolons, three forms of dates, a missing and an impossible one, an empty text, a bad row."""
    dates = ["2020-01-02", "03.04.2020", "05/06/2020", "", "soon", "2020-07-08"]
    rows = [f"d{i};{date};words of {i}" for i, date in enumerate(dates)]
    rows = ["id;when;text", *rows, "d7;2020-01-01;", ";;", "d8;x"]
    (tmp_path / "messy.csv").write_text("\n".join(rows))
    words = ["index", "--input", tmp_path / "messy.csv", *"--contents-field text --date-field when --skip-bad".split()]
    words += ["--date-format", "auto", "--date-format", "%d.%m.%Y", "--date-format", "%m/%d/%Y"]
    outcome = typed(*words, "--index", tmp_path / "ix")
    assert outcome.code == 0, outcome
    table = dict(line.split(maxsplit=1) for line in outcome.out.splitlines() if not line.startswith("unique"))
    assert table["documents"] == "6"
    assert table["undated"] == "2"
    assert table["skipped"] == "2 (1 bad, 1 without text)"
    assert "kept, undated, 1 documents without a date that could be read:" in outcome.err
    assert f"1 × {tmp_path}/messy.csv:6: field 'when': not a time: 'soon'" in outcome.err
    assert f"1 × {tmp_path}/messy.csv:10: 2 columns, expected 3" in outcome.err
    assert "left out 1 documents without text (d7)" in outcome.err
    outcome = typed(*words, "--index", tmp_path / "dated", "--undated", "drop")
    table = dict(line.split(maxsplit=1) for line in outcome.out.splitlines() if not line.startswith("unique"))
    assert (table["documents"], table["undated"]) == ("4", "0")
    assert table["skipped"] == "4 (1 bad, 2 without a date, 1 without text)"
