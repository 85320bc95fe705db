"""Documents that are files: text and HTML, in folders and archives, and archives that mean harm."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile

import pytest
from corpus_reading import error_of, read

from sdretrieval.collection.corpus import Problems, Reader
from sdretrieval.collection.corpus.reading import read_corpus
from sdretrieval.collection.corpus.whole_files import head_fields


def tar_of(path, members: dict[str, bytes], mode: str = "w:gz"):
    with tarfile.open(path, mode) as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def test_text_files_of_a_folder(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.txt").write_bytes(b"first\r\nfile")
    (tmp_path / "sub" / "b.txt.gz").write_bytes(gzip.compress(b"second"))
    first, second = read(tmp_path)
    assert (first.docid, first.contents, first.fields) == ("a", "first\nfile", {"path": "a.txt"})
    assert (second.docid, second.contents, second.fields) == ("b", "second", {"path": "sub/b.txt.gz"})


def test_which_files_and_what_they_are_called(tmp_path):
    for name in ("sub/my tea.txt", "index/segments_1.txt", "b.txt", "51060"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("From: someone\n\ntext")

    def ids(*paths, **options) -> list[str]:
        return [document.docid for document in read(*(paths or [tmp_path]), **options)]

    left = {"exclude": (tmp_path / "index",)}  # the index itself is never read
    assert ids(**left) == ["b", "my%20tea"]
    assert ids(docid_style="path", **left) == ["b.txt", "sub/my%20tea.txt"]
    assert ids(tmp_path / "sub", tmp_path / "b.txt") == ["my%20tea", "b"]
    assert [document.docid for document in read_corpus(tmp_path / "b.txt")] == ["b"]
    assert ids(glob="b*") == ["b"]
    assert "no file in it matches 'c*'" in error_of(tmp_path, glob="c*")
    assert "cannot tell the format of this file (51060)" in error_of(tmp_path / "51060")
    assert ids(tmp_path / "51060", format="text") == ["51060"]


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz", "a.tgz", "a.tar.bz2", "a.tar.xz"])
def test_tar_archives(tmp_path, name):
    mode = next(
        (f"w:{kind}" for kind in ("gz", "bz2", "xz") if name.endswith(kind)), "w" if name == "a.tar" else "w:gz"
    )
    path = tar_of(tmp_path / name, {"x/1.txt": b"one", "x/2.jsonl": b'{"id": "2", "contents": "two"}'}, mode)
    first, second = read(path)
    assert (first.docid, first.source) == ("1", f"{path}!x/1.txt")
    assert (second.docid, second.source, second.line) == ("2", f"{path}!x/2.jsonl", 1)


def test_zip_archive(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x/1.txt", "one")
        archive.writestr("__MACOSX/x/1.txt", "junk")
        archive.writestr("x/2.trec", "<DOC><DOCNO>2</DOCNO><TEXT>two</TEXT></DOC>")
    assert [(d.docid, d.contents) for d in read(tmp_path / "a.zip")] == [("1", "one"), ("2", "two")]


def test_members_whose_format_only_their_first_bytes_tell(tmp_path):
    path = tar_of(
        tmp_path / "a.tgz",
        {
            "one": b"<DOC>\n<DOCNO>1</DOCNO>\n<TEXT>one</TEXT>\n</DOC>\n",
            "two.txt": b"<DOC>\n<DOCNO>2</DOCNO>\n<TEXT>two</TEXT>\n</DOC>\n",
            "LICENSE": b"Permission is granted",
            "three.gz": gzip.compress(b'{"id": "3", "contents": "three"}'),
        },
    )
    reader = Reader()
    assert [d.docid + d.contents for d in reader.read([path])] == ["1one", "2two", "3three"]
    assert reader.ignored == [f"{path}!LICENSE"]


@pytest.mark.parametrize("name", ["/etc/passwd.txt", "../up.txt", "x/../../up.txt", "x\\..\\up.txt"])
def test_names_that_leave_the_archive_are_refused(tmp_path, name):
    path = tar_of(tmp_path / "a.tar", {name: b"harm", "good.txt": b"good"}, "w")
    assert "a member whose name leaves the archive" in error_of(path)
    problems = Problems(skip=True)
    assert [d.docid for d in read(path, problems=problems)] == ["good"]
    assert problems.count == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.tar"]


def test_links_and_devices_are_passed_over(tmp_path):
    (tmp_path / "secret.txt").write_text("secret")
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE):
            info = tarfile.TarInfo(f"kind{kind.decode()}.txt")
            info.type, info.linkname = kind, str(tmp_path / "secret.txt")
            archive.addfile(info)
        info = tarfile.TarInfo("good.txt")
        info.size = 4
        archive.addfile(info, io.BytesIO(b"good"))
    assert [d.contents for d in read(tmp_path / "a.tar")] == ["good"]
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        link = zipfile.ZipInfo("link.txt")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, str(tmp_path / "secret.txt"))
        archive.writestr("good.txt", "good")
    assert [d.contents for d in read(tmp_path / "a.zip")] == ["good"]


def test_decompression_is_bounded(tmp_path):
    bomb = b"0" * (4 << 20)
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb.txt", bomb)
        archive.writestr("twice.txt.gz", gzip.compress(bomb))
        archive.writestr("good.txt", "good")
    assert (tmp_path / "a.zip").stat().st_size < 1 << 16
    message = error_of(tmp_path / "a.zip", max_member_bytes=1 << 20)
    assert "bomb.txt: more than 1,048,576 bytes when decompressed" in message
    problems = Problems(skip=True)
    found = read(tmp_path / "a.zip", max_member_bytes=1 << 20, problems=problems)
    assert [document.docid for document in found] == ["good"]
    assert problems.count == 2


def test_archives_and_files_that_cannot_be_read(tmp_path, monkeypatch):
    path = tar_of(tmp_path / "a.tar.gz", {f"{i}.txt": bytes(str(i) * 5000, "ascii") for i in range(50)})
    path.write_bytes(path.read_bytes()[:-300])
    assert "damaged" in error_of(path)
    (tmp_path / "b.zip").write_bytes(b"PK no")
    assert "damaged archive" in error_of(tmp_path / "b.zip")
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a.txt", "x")
    data = bytearray((tmp_path / "a.zip").read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1  # the flag in the central directory
    data[6] |= 1
    (tmp_path / "a.zip").write_bytes(data)
    assert "is encrypted" in error_of(tmp_path / "a.zip")
    (tmp_path / "ft911.0z").write_bytes(b"\x1f\x9d\x90data")
    assert "Run `uncompress`" in error_of(tmp_path / "ft911.0z", format="trec")
    monkeypatch.setattr("sdretrieval.collection.corpus.whole_files._LONGEST_FILE", 10)
    (tmp_path / "a.txt").write_text("x" * 11)
    assert "too long for one document" in error_of(tmp_path / "a.txt")


def test_wrong_encoding_of_a_text_file_names_the_line(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"one\ntwo\ncaf\xe9\n")
    assert error_of(tmp_path / "a.txt").startswith(f"{tmp_path}/a.txt:3: not utf-8 text: byte 0xe9")
    assert read(tmp_path / "a.txt", encoding="latin-1")[0].contents == "one\ntwo\ncafé\n"


def test_head_of_a_page():
    page = (
        "<html><HEAD><meta charset=utf-8><title>Tea\n &amp; time</title>"
        '<meta property="article:published_time" content="2024-05-01T10:00:00Z"/>'
        "<meta name=author content='A. &lt;B&gt;'></head><body><title>not this</title></body>"
    )
    assert head_fields(page) == {
        "title": "Tea & time",
        "article:published_time": "2024-05-01T10:00:00Z",
        "author": "A. <B>",
    }
    assert head_fields("no markup at all") == {}


@pytest.mark.java
def test_html_to_text_with_fields_and_date(tmp_path):
    (tmp_path / "p.html").write_text(
        "<html><head><title>Tea</title><meta name='date' content='2024-05-01'>"
        "<script>var x = 'not text';</script></head>"
        "<body><p>One<b>word</b>.</p><p>Caf&eacute; 😀 𝒳</p><!-- no --></body></html>"
    )
    (document,) = read(tmp_path, date="date")
    assert document.contents == "Tea Oneword. Café 😀 𝒳"  # what Jsoup's text() is documented to give
    assert document.fields == {"title": "Tea", "date": "2024-05-01", "path": "p.html"}
    assert document.time == 1714521600000  # date -d 2024-05-01T00:00:00Z +%s
