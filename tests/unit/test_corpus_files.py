"""Documents that are files: text and HTML, in folders and archives, and archives that mean harm."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import tarfile
import time
import zipfile

import pytest
from corpus_reading import error_of, read

from sdretrieval.collection.corpus import Problems, Reader
from sdretrieval.collection.corpus.reading import read_corpus
from sdretrieval.collection.corpus.trec_sgml import plain
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


MANY = {f"{i}.txt": str(i).encode() * 3000 for i in range(5)}


@pytest.mark.parametrize("ending", ["gz", "bz2", "xz"])
def test_all_of_a_compressed_tar(tmp_path, ending):
    """Python's streamed tar stops at the end of the first compressed member, and at the end of the first tar."""
    pack = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}[ending]
    data = tar_of(tmp_path / "plain.tar", MANY, "w").read_bytes()
    second = tar_of(tmp_path / "second.tar", {"second.txt": b"second"}, "w").read_bytes()
    path = tmp_path / f"a.tar.{ending}"
    path.write_bytes(b"".join(pack(data[i : i + 4096]) for i in range(0, len(data), 4096)))
    assert [d.docid for d in read(path)] == list("01234")
    path.write_bytes(pack(data) + pack(second))
    assert [d.docid for d in read(path)] == [*"01234", "second"]


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda data: data[:3600] + b"X" + data[3601:], "bad checksum at byte 3,584"),  # the second member's header
        (lambda data: data[:3600], "truncated header"),
        (lambda data: data[:3584], "it ends without its end mark"),
        (lambda data: data[:6000], "unexpected end of data"),
        (lambda data: data[:-512] + b"Y" * 512, "bad checksum|invalid header"),
    ],
)
def test_a_damaged_tar_loses_nothing_silently(tmp_path, suffix, damage, told):
    data = damage(tar_of(tmp_path / "plain.tar", MANY, "w").read_bytes())
    path = tmp_path / f"a.tar{suffix}"
    path.write_bytes(gzip.compress(data) if suffix else data)
    assert re.search(f"damaged (archive|compressed data) .*({told})", error_of(path))
    problems = Problems(skip=True)
    found = [d.docid for d in read(path, problems=problems)]
    assert found[:1] == ["0"] and problems.count >= 1


def test_a_wrong_checksum_at_the_end_of_a_tar(tmp_path):
    path = tar_of(tmp_path / "a.tar.gz", MANY)
    data = path.read_bytes()
    path.write_bytes(data[:-8] + bytes([data[-8] ^ 1]) + data[-7:])
    assert "damaged gzip data" in error_of(path) and "incorrect data check" in error_of(path)


def test_zips_that_hide_members(tmp_path):
    for name, members in (("a.zip", MANY), ("b.zip", {"b.txt": b"b"})):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            for member, data in members.items():
                archive.writestr(member, data)
    a, b = ((tmp_path / name).read_bytes() for name in ("a.zip", "b.zip"))
    (tmp_path / "both.zip").write_bytes(a + b)
    assert "bytes before its first member" in error_of(tmp_path / "both.zip")
    directory = bytearray(a)
    directory[a.index(b"PK\x01\x02") + 32] = 51 * 2  # the first one's comment takes the next two
    (tmp_path / "hidden.zip").write_bytes(directory)
    assert "has 3 members, and says that it has 5" in error_of(tmp_path / "hidden.zip")
    for method in (99, 14):  # unknown ways to compress, lzma of nothing
        odd = bytearray(a)
        odd[odd.index(b"PK\x01\x02") + 10] = method
        (tmp_path / "odd.zip").write_bytes(odd)
        problems = Problems(skip=True)
        assert [d.docid for d in read(tmp_path / "odd.zip", problems=problems)] == list("1234")
        assert problems.count == 1


def test_members_of_a_zip_over_one_another(tmp_path, monkeypatch):
    monkeypatch.setattr("sdretrieval.collection.corpus.sources.HARMLESS", 1 << 16)
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb.txt", b"0" * (8 << 20))
    assert "unpack to 8,388,608, over 250 times as many" in error_of(tmp_path / "a.zip")


def test_archives_and_files_that_cannot_be_read(tmp_path, monkeypatch):
    path = tar_of(tmp_path / "a.tar.gz", {f"{i}.txt": bytes(str(i) * 5000, "ascii") for i in range(50)})
    path.write_bytes(path.read_bytes()[:-300])
    assert "damaged" in error_of(path)
    (tmp_path / "b.zip").write_bytes(b"PK no")
    assert "damaged archive" in error_of(tmp_path / "b.zip")
    (tmp_path / "b.jsonl").write_bytes(b"BZh is how this line begins\n" * 20)
    assert "damaged bzip2 data" in error_of(tmp_path / "b.jsonl")
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
    assert head_fields("<script>'<title>no'</script><!-- <title>no</title> --><title>yes") == {"title": "yes"}
    assert head_fields("<meta name=a content='x > y'/><meta name='b' content=c d>") == {"a": "x > y", "b": "c"}
    assert head_fields("<meta name='never closed") == {}


@pytest.mark.parametrize("piece", ["<!", "<a <", "<meta name='", "<meta a ", "<title>", "<!--", "<script ", "<DOC <"])
def test_odd_pages_take_linear_time(piece):
    """Of 300 KB; what is quadratic takes minutes (the guard is generous: it is not a measurement)."""
    began = time.process_time()
    head_fields("<title>" + piece * (300_000 // len(piece)))
    plain(piece * (300_000 // len(piece)))
    assert time.process_time() - began < 30


@pytest.mark.java
def test_pages_that_are_none(tmp_path):
    (tmp_path / "deep.html").write_text("<html>" + "<div>" * 10_000 + "x" + "</div>" * 10_000)
    (tmp_path / "fine.html").write_text("<html><p>fine" + "<br>" * 10_000 + "<p>" * 10_000)
    assert "elements lie 10,001 deep in one another" in error_of(tmp_path / "deep.html")
    problems = Problems(skip=True)
    assert [d.docid for d in read(tmp_path, problems=problems)] == ["fine"]


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
