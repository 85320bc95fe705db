"""Files cut into pieces for the tasks that read them: every piece boundary there is, against the file in one piece."""

from __future__ import annotations

import gzip
import json
import shutil
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sdretrieval.collection.corpus.reading import Reader
from sdretrieval.collection.corpus.record import Document, Problems
from sdretrieval.core.errors import InputError, JavaError, SdretrievalError
from sdretrieval.plugins.spark import reading
from sdretrieval.plugins.spark.reading import Bad, File, Piece, Reading, is_splittable, list_files, plan
from sdretrieval.plugins.spark.runners import WorkerProblem, plain_errors
from sdretrieval.plugins.spark.storage import StorageProblem


class Serial:
    """As much of a SparkContext as planning asks for."""

    defaultParallelism = 2

    def parallelize(self, items, n):
        return SimpleNamespace(map=lambda f: SimpleNamespace(collect=lambda: [f(item) for item in items]))


def read(tasks, **options) -> list:
    """What tasks read, in the order of the keys."""
    given = {"skip_bad": True, **options}
    found = [pair for task in tasks for pair in Reading({}, **given)(task)]
    assert [number for number, _ in found] == sorted(number for number, _ in found)
    return [
        (each.docid, each.contents, each.source, each.line) if isinstance(each, Document) else each.error.message
        for _, each in found
    ]


LINES = st.lists(
    st.one_of(
        st.integers(0, 10**6).map(
            lambda i: json.dumps({"id": f"d{i}", "contents": "é日" * (i % 9)}, ensure_ascii=False)
        ),
        st.sampled_from(["", " ", "{", '{"id": 1', '"text"', '\ufeff{"id": "bom", "contents": "x"}', "BZh9", "x" * 90]),
    ),
    max_size=25,
)


@settings(max_examples=60, deadline=None)
@given(LINES, st.sampled_from(["\n", "\r\n"]), st.booleans(), st.integers(1, 120), st.booleans())
def test_pieces_read_as_the_whole(tmp_path_factory, lines, end, ended, size, marked):
    """Same documents, same errors, same line numbers, wherever the file is cut."""
    lines = ['{"id": "first", "contents": "x"}', *lines]  # what looks compressed is not cut
    path = tmp_path_factory.mktemp("pieces") / "docs.jsonl"
    path.write_bytes((b"\xef\xbb\xbf" if marked else b"") + (end.join(lines) + (end if ended else "")).encode())
    (file,) = list_files([path], exclude=path.parent / "target")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "SPLIT", size)
        tasks = plan(Serial(), [file], {})
    assert read(tasks) == read([[(0, Piece(file))]])
    if file.size > size:
        assert all(piece.span is not None for task in tasks for _, piece in task)


def test_an_error_in_a_piece_names_the_line_of_the_file(tmp_path, monkeypatch):
    lines = [json.dumps({"id": f"d{i}", "contents": "x" * 40}) for i in range(200)]
    lines[150] = "{broken"
    path = tmp_path / "docs.jsonl"
    path.write_text("\n".join(lines))
    monkeypatch.setattr(reading, "SPLIT", 500)
    tasks = plan(Serial(), list_files([path], exclude=tmp_path / "x"), {})
    assert len(tasks) > 15
    told = [found for task in tasks for _, found in Reading({}, skip_bad=False)(task) if isinstance(found, Bad)]
    assert [bad.error.message.partition(" malformed")[0] for bad in told] == [f"{path}:151:"]
    assert told[0].error.line == 151 and "--skip-bad" in told[0].error.remedy


@pytest.mark.parametrize(
    ("name", "content", "options"),
    [
        ("a.jsonl", gzip.compress(b"{}\n" * 50), {}),
        ("a.jsonl", b"{}\n" * 50, {"encoding": "utf-16"}),
        ("a.json", b"{}\n" * 50, {}),
        ("a.csv", b"a,b\n" * 50, {}),
        ("a.jsonl", b"x\n" * 50, {"format": "text"}),
    ],
    ids=["gzip", "utf-16", "json", "csv", "text"],  # the bytes of a gzip hold the time: no name for a test
)
def test_what_cannot_be_cut(tmp_path, name, content, options):
    (tmp_path / name).write_bytes(content)
    assert not is_splittable(File(str(tmp_path / name), name, len(content), 0), options)


def test_small_files_share_a_task_and_keep_their_order(tmp_path, monkeypatch):
    for i in range(12):
        (tmp_path / f"{i:02d}.jsonl").write_text(json.dumps({"id": f"d{i}", "contents": "x"}) + "\n")
    files = list_files([tmp_path], exclude=tmp_path / "x")
    assert len(plan(Serial(), files, {})) == 1
    monkeypatch.setattr(reading, "FILES_AT_ONCE", 5)
    tasks = plan(Serial(), files, {})
    assert [len(task) for task in tasks] == [5, 5, 2]
    assert [docid for docid, *_ in read(tasks)] == [f"d{i}" for i in range(12)]


class Elsewhere:
    """A client that copies from a local folder, what stands behind mem://, or has a problem."""

    def __init__(self, folder: Path | None, problem: Exception | None = None) -> None:
        self.folder, self.problem, self.calls = folder, problem, []

    def get(self, addresses, local):
        self.calls.append(list(addresses))
        if self.problem:
            raise self.problem
        for address in addresses:
            shutil.copy(self.folder / address.removeprefix("mem://"), local)


def test_files_at_an_address_are_named_by_it(tmp_path, monkeypatch):
    """Not by the copy that was read; and no copy stays. As few calls as names allow, whatever the folders."""
    (tmp_path / "there" / "in").mkdir(parents=True)
    (tmp_path / "scratch").mkdir()
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path / "scratch"))
    names = ("a.jsonl", "b.jsonl", "in/a.jsonl", "in/c.jsonl")
    for name in names:
        (tmp_path / "there" / name).write_text(f'{{"id": "{name}", "contents": "x"}}\nbroken\n')
    client = Elsewhere(tmp_path / "there")
    files = [File(f"mem://{name}", name, 50, 0, True) for name in (*names, names[0])]  # one of them twice
    found = read([list(enumerate(map(Piece, files)))], storage=client)
    assert [each[2:] for each in found if isinstance(each, tuple)] == [(file.place, 1) for file in files]
    assert [each.split(" ")[0] for each in found if isinstance(each, str)] == [f"{file.place}:2:" for file in files]
    assert client.calls == [["mem://a.jsonl", "mem://b.jsonl", "mem://in/c.jsonl"], ["mem://in/a.jsonl"]]
    assert not list((tmp_path / "scratch").iterdir())


REMOTE = [(0, Piece(File("mem://a.jsonl", "a.jsonl", 50, 0, True)))]


def test_a_file_that_was_lost_is_not_skipped_as_bad():
    away = Elsewhere(None, StorageProblem("gone", missing=True))
    ((_, found),) = Reading({}, skip_bad=True, storage=away)(REMOTE)
    assert isinstance(found, Bad) and found.is_fatal and "gone" in found.error.message


@pytest.mark.parametrize(
    ("problem", "told"),
    [
        (StorageProblem("mem://a.jsonl: Connection refused", remedy="Does it run?"), "Connection refused"),
        (JavaError("no Java here", remedy="Install one."), "no Java here"),
        (OSError(28, "No space left on device", "/scratch"), "/scratch: No space left on device"),
    ],
)
def test_what_another_machine_may_do_leaves_the_task(problem, told):
    """So that Spark tries it there; what is left when it gives up is said without a traceback."""
    with pytest.raises(WorkerProblem) as caught:
        list(Reading({}, skip_bad=True, storage=Elsewhere(None, problem))(REMOTE))
    with pytest.raises(SdretrievalError) as plain, plain_errors():
        raise RuntimeError(
            f"Job aborted\n  File ...\nmodule.WorkerProblem: {caught.value}\n\n\tat java.lang.Thread.run"
        )
    assert told in plain.value.message and "java" not in str(plain.value)
    assert plain.value.remedy


def test_a_damaged_member_of_an_archive_leaves_the_others(tmp_path):
    """As on one machine; and what is wrong with the archive itself is counted too."""
    path = tmp_path / "docs.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.txt.gz", gzip.compress(b"x" * 1000)[:20])
        archive.writestr("b.jsonl", '{"id": "b", "contents": "x"}\n')
        archive.writestr("../c.jsonl", '{"id": "c", "contents": "x"}\n')
    problems = Problems(skip=True)
    wanted = [document.docid for document in Reader(problems=problems).read([path])]
    found = read([[(0, Piece(File(str(path), path.name, 1, 0)))]])
    assert [each[0] for each in found if isinstance(each, tuple)] == wanted == ["b"]
    told = sorted(each for each in found if isinstance(each, str))
    assert len(told) == problems.count == 2 and "!../c.jsonl: a member" in told[0] and "!a.txt.gz" in told[1]


def test_a_file_that_this_worker_does_not_see(tmp_path):
    file = File(str(tmp_path / "away.jsonl"), "away.jsonl", 100, 0)
    with pytest.raises(WorkerProblem, match=r"away\.jsonl: No such file.*mounted.* on all workers"):
        list(Reading({}, skip_bad=True)([(0, Piece(file))]))
    with pytest.raises(WorkerProblem, match=r"away\.jsonl: No such file.*mounted.* on all workers"):
        reading.cut(10, file)


def test_files_are_listed_with_their_names_below_the_input(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    for name in ("a/x.jsonl", "a/b/y.jsonl", "a/.hidden", "z.jsonl"):
        (tmp_path / name).touch()
    listed = list_files([tmp_path / "a", tmp_path / "z.jsonl"], exclude=tmp_path / "target")
    assert sorted(file.relative for file in listed) == ["b/y.jsonl", "x.jsonl", "z.jsonl"]


def test_inputs_that_are_refused(tmp_path):
    for name in ("links", "empty"):
        (tmp_path / name).mkdir()
    (tmp_path / "links" / "x.jsonl").symlink_to(tmp_path / "nowhere")
    for place, told in (
        ("links", r"x\.jsonl: cannot be read: a link to nothing"),
        ("empty", "no file in it"),
        ("nowhere", "no such file or folder"),
    ):
        with pytest.raises(InputError, match=told):
            list_files([tmp_path / place], exclude=tmp_path / "index")
