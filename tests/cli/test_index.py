"""``sdretrieval index`` as a new user meets it: output, exit code, and what is left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest
from shown import as_shown

from sdretrieval.cli.main import main


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


def run(capsys, *words: object) -> tuple[int, str, str]:
    code = main(["index", *map(str, words)])
    out, err = capsys.readouterr()
    return code, out, as_shown(err)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('{"id": "d9", "contents": "cut', "docs.jsonl:6: malformed JSON"),
        ('{"id": "d9"}', "docs.jsonl:6: no field 'contents'"),
        ('{"contents": "x"}', "docs.jsonl:6: no field 'id'"),
        ('{"id": "d2", "contents": "x"}', "docs.jsonl:6: document id 'd2' was already used at "),
        ('{"id": "d9", "contents": "x", "date": "soon"}', "docs.jsonl:6: field 'date': not a time: 'soon'"),
    ],
)
def test_bad_input_is_one_clear_error_and_leaves_nothing(tmp_path, docs, capsys, line, told):
    with docs.open("a") as stream:
        stream.write(line + "\n")
    code, out, err = run(capsys, "--input", docs, "--index", tmp_path / "ix" / "mine", "--date-field", "date")
    assert (code, out) == (2, "")
    assert err.startswith(f"sdretrieval index: {tmp_path}/")
    assert told in err
    assert "Traceback" not in err
    assert tree(tmp_path) == ["docs.jsonl"]


def test_wrong_encoding(tmp_path, docs, capsys):
    with docs.open("ab") as stream:
        stream.write('{"id": "d9", "contents": "naïve"}\n'.encode("latin-1"))
    code, _, err = run(capsys, "--input", docs, "--index", tmp_path / "mine")
    assert code == 2
    assert "docs.jsonl:6: not utf-8 text: byte 0xef" in err
    assert "--encoding latin-1" in err
    assert tree(tmp_path) == ["docs.jsonl"]


def test_existing_index(tmp_path, docs, capsys):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "segments_1").write_text("")
    code, _, err = run(capsys, "--input", docs, "--index", tmp_path / "mine")
    assert code == 2
    assert "exists.\n  Pass --overwrite" in err


def test_nothing_to_read(tmp_path, capsys):
    code, _, err = run(capsys, "--input", tmp_path / "nowhere", "--index", tmp_path / "mine")
    assert code == 2
    assert "nowhere: no such file or folder" in err
    (tmp_path / "empty.jsonl").write_text("\n")
    code, _, err = run(capsys, "--input", tmp_path / "empty.jsonl", "--index", tmp_path / "mine")
    assert code == 2
    assert "the corpus has no document to index" in err
    assert tree(tmp_path) == ["empty.jsonl"]


@pytest.mark.parametrize(
    "words",
    [
        ["--input", "x"],
        ["--index", "x"],
        ["--input", "x", "--dataset", "y", "--index", "z"],
        ["--input", "x", "--index", "y", "--format", "word"],
        ["--input", "x", "--index", "y", "--language", "xx"],
    ],
)
def test_wrong_options_are_usage_errors(words, capsys):
    with pytest.raises(SystemExit) as caught:
        main(["index", *words])
    assert caught.value.code == 2
    assert "usage: sdretrieval index" in capsys.readouterr().err


def test_help_has_examples(capsys):
    with pytest.raises(SystemExit):
        main(["index", "--help"])
    assert "sdretrieval index --input docs.jsonl --index indexes/mine" in capsys.readouterr().out


def test_dataset_options(tmp_path, capsys):
    pytest.importorskip("ir_datasets")
    code, _, err = run(capsys, "--dataset", "no-such-thing", "--index", tmp_path / "mine")
    assert code == 2
    assert "ir_datasets knows no dataset 'no-such-thing'" in err
    code, _, err = run(capsys, "--dataset", "vaswani", "--id-field", "x", "--index", tmp_path / "mine")
    assert code == 2
    assert "a dataset knows its own" in err


# In processes of their own -------------------------------------------------------------------------------


MAIN = "import sys; from sdretrieval.cli.main import main; sys.exit(main())"


def start(*words: object, first: str = "", **options) -> subprocess.Popen:
    """The command in a process of its own; ``first`` is code that runs there before it."""
    program = ["-c", f"{first}\n{MAIN}"] if first else ["-m", "sdretrieval.cli.main"]
    command = [sys.executable, *program, "index", *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


@pytest.mark.java
def test_first_index_of_a_new_user(tmp_path, docs):
    process = start("--input", docs, "--index", "indexes/mine", "--date-field", "date", cwd=tmp_path)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert as_shown(err) == ""  # no noise
    rows = dict(line.split(None, 1) for line in out.splitlines() if not line.startswith("unique"))
    assert rows["index"] == "indexes/mine"
    assert (rows["documents"], rows["tokens"], rows["undated"], rows["skipped"]) == ("5", "25", "0", "0")
    assert rows["dates"] == "2024-01-01T00:00:00Z .. 2024-01-05T00:00:00Z"
    assert (tmp_path / "indexes" / "mine" / "segments_1").exists()
    assert tree(tmp_path)[:3] == ["docs.jsonl", "indexes", "indexes/mine"]


@pytest.mark.java
def test_json_summary_skipped_and_hints(tmp_path, docs):
    with docs.open("a") as stream:
        stream.write('{"id": "d9", "contents": "cut\n')
        stream.write('{"id": "d1", "contents": "again"}\n{"id": "e", "contents": ""}\n')
    (tmp_path / "notes.md").write_text("no document")
    process = start("--input", tmp_path, "--index", tmp_path / "mine", "--skip-bad", "--json")
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    summary = json.loads(out)
    assert (summary["documents"], summary["undated"], summary["skipped"], summary["empty"]) == (5, 5, 2, 1)
    assert summary["skipped_list"][1] == f"{docs}:7: document id 'd1' was already used at {docs}:2"
    assert "sdretrieval index: skipped 2 bad documents:" in err
    assert "left out 1 documents without text (e)" in err
    assert "ignored 1 files of unknown format" in err
    assert "--date-field date would give them times" in err


@pytest.mark.java
def test_every_format_through_the_command(tmp_path, capsys):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_text('{"id": "json", "contents": "tea"}\n')
    (tmp_path / "in" / "b.csv").write_text("id,contents\ncsv,tea\n")
    (tmp_path / "in" / "c.tsv").write_text("id\tcontents\ntsv\ttea\n")
    (tmp_path / "in" / "d.trec").write_text("<DOC>\n<DOCNO>trec</DOCNO>\n<TEXT>tea</TEXT>\n</DOC>\n")
    (tmp_path / "in" / "text.txt").write_text("tea")
    (tmp_path / "html.html").write_text("<p>tea")
    with tarfile.open(tmp_path / "in" / "e.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "html.html", "pages/html.html")
    code, out, err = run(capsys, "--input", tmp_path / "in", "--index", tmp_path / "mine", "--json")
    assert code == 0, err
    assert {name: json.loads(out)[name] for name in ("documents", "tokens", "terms")} == {
        "documents": 6,
        "tokens": 6,
        "terms": 1,
    }


# A build that does not end by itself, so that a signal which comes late on a busy machine still comes in time.
NO_END = (
    "import time; from sdretrieval.index.lucene import indexing; indexing._statistics = lambda *given: time.sleep(600)"
)


@pytest.mark.java
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("phase", ["reading", "indexing"])
def test_interrupted(tmp_path, number, code, phase):
    """Ctrl-C and SIGTERM, while reading and while Lucene works, leave the old index and nothing else."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "segments_1").write_text("old")
    source = tmp_path / "docs.jsonl"
    if phase == "reading":
        os.mkfifo(source)  # a reader waits on it for as long as we like
    else:
        corpus(source, 6000, words=400)
    words = ("--input", source, "--index", tmp_path / "mine", "--overwrite", "--format", "jsonl")
    process = start(*words, first=NO_END)
    if phase == "reading":
        stream = source.open("w")
        stream.write('{"id": "1", "contents": "x"}\n')
        stream.flush()
        wait_for(process, lambda: any(tmp_path.glob(".mine.*.building/documents")))
        time.sleep(0.3)
    else:
        stream = None
        wait_for(process, lambda: any(tmp_path.glob(".mine.*.building/index/*")))
    process.send_signal(number)
    try:
        out, err = process.communicate(timeout=300)
    finally:
        if stream is not None:
            stream.close()
    assert process.returncode == code, (out, err)
    assert "Traceback" not in err
    assert "Exception" not in err
    assert "nothing half-written was left behind" in err
    assert tree(tmp_path) == ["docs.jsonl", "mine", "mine/segments_1"]


def wait_for(process: subprocess.Popen, condition) -> None:
    deadline = time.monotonic() + 300
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.mark.java
@pytest.mark.parametrize("limit", [2_000, 300_000])
def test_full_disk(tmp_path, limit):
    """No room for the documents (2 kB a file), or for the documents but not for Lucene's files (300 kB)."""
    pytest.importorskip("resource")
    source = corpus(tmp_path / "docs.jsonl", 3000, words=30)
    # The process limits itself: with the threads of a JVM in this one, nothing should run between fork and exec.
    limited = (
        f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}));"
        "from sdretrieval.index.lucene import indexing; indexing.DOCUMENTS_PER_SHARD = 500"
    )
    process = start("--input", source, "--index", tmp_path / "mine", first=limited)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 2, err
    assert "no room left" in err
    assert "Free some space" in err
    assert "\tat " not in err  # no Java stack trace
    assert tree(tmp_path) == ["docs.jsonl"]
