"""Files that appear whole or not at all, and text that says where it is broken."""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import os
import signal
import stat
import threading
import time
from pathlib import Path

import pytest

from sdretrieval.core.errors import InputError, SdretrievalError
from sdretrieval.core.files import append_whole, atomic_writer, check_writable, is_special, numbered_lines, open_text

# -- writing -----------------------------------------------------------------------------------------------------


def test_text_in_a_folder_that_is_made_for_it(tmp_path):
    path = tmp_path / "a" / "b" / "x.txt"
    with atomic_writer(path) as out:
        out.write("Übergröße\n")
        assert not path.exists()  # not before it is whole
    assert path.read_bytes() == "Übergröße\n".encode()
    assert [p.name for p in path.parent.iterdir()] == ["x.txt"]


@pytest.mark.parametrize("binary", [False, True])
def test_gz_by_its_name_and_always_the_same_bytes(tmp_path, binary):
    written = {}
    for name in ("x.bin", "x.gz", "another name.gz"):
        with atomic_writer(tmp_path / name, binary=binary) as out:
            out.write(b"line\n" * 1000 if binary else "line\n" * 1000)
        written[name] = (tmp_path / name).read_bytes()
    assert written["x.bin"] == gzip.decompress(written["x.gz"]) == b"line\n" * 1000
    assert written["x.gz"] == written["another name.gz"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError, SystemExit])
@pytest.mark.parametrize("name", ["x.txt", "x.txt.gz"])
@pytest.mark.parametrize("old", [True, False])
def test_an_interruption_leaves_the_old_file_or_nothing(tmp_path, error, name, old):
    path = tmp_path / name
    if old:
        path.write_text("old")
    with pytest.raises(error), atomic_writer(path) as out:
        out.write("new" * 100_000)
        raise error
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == ([(name, "old")] if old else [])


def test_readers_of_the_old_file_are_not_disturbed(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("old")
    with path.open() as reader:
        with atomic_writer(path) as out:
            out.write("new")
        assert reader.read() == "old"
    assert path.read_text() == "new"


def test_a_link_stays_a_link_and_a_relative_name_is_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "disk").mkdir()
    (tmp_path / "disk" / "x.txt").write_text("old")
    (tmp_path / "x.txt").symlink_to("disk/x.txt")
    with atomic_writer("x.txt") as out:
        out.write("new")
    assert (tmp_path / "x.txt").is_symlink()
    assert (tmp_path / "disk" / "x.txt").read_text() == "new"


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path):
    pipe, received = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()), daemon=True)
    reader.start()
    with atomic_writer(pipe) as out:
        out.write("through\n")
    reader.join(timeout=100)
    assert received == [b"through\n"]
    assert pipe.is_fifo()


def test_what_is_special(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_text("")
    assert is_special(tmp_path / "pipe")
    assert is_special(os.devnull)
    assert not any(map(is_special, (tmp_path, tmp_path / "file", tmp_path / "nothing")))


# -- what cannot be written --------------------------------------------------------------------------------------


@pytest.mark.parametrize("go", [check_writable, lambda path: atomic_writer(path).__enter__()])
def test_places_where_nothing_can_be_written(tmp_path, monkeypatch, go):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(SdretrievalError, match="is a folder, a file to write was expected"):
        go(tmp_path)
    with pytest.raises(SdretrievalError, match="is a folder"):
        go("")
    with pytest.raises(SdretrievalError, match=r"file/a/x\.txt: cannot be written, .*file is not a folder"):
        go(tmp_path / "file" / "a" / "x.txt")
    check_writable(tmp_path / "a" / "b" / "x.txt")  # makes nothing
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(SdretrievalError, match="no permission"):
        check_writable(tmp_path / "x.txt")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux's /dev/full")
def test_a_full_disk():
    told = r"/dev/full: cannot be written \(No space left on device\)"
    with pytest.raises(SdretrievalError, match=told) as caught, atomic_writer("/dev/full") as out:
        out.write("x")
    assert caught.value.remedy == "Make room."


def test_errors_of_what_is_done_meanwhile_are_not_blamed_on_this_file(tmp_path):
    with pytest.raises(FileNotFoundError), atomic_writer(tmp_path / "x.txt"):
        (tmp_path / "elsewhere" / "input.txt").read_text()
    for number in (errno.ENOSPC, errno.EMFILE, errno.ECONNREFUSED):
        with pytest.raises(OSError, match="of another") as caught, atomic_writer(tmp_path / "x.txt") as out:
            out.write("begun")
            raise OSError(number, "of another")
        assert caught.value.filename is None
    assert list(tmp_path.iterdir()) == []


# -- reading -----------------------------------------------------------------------------------------------------


def test_gz_is_told_by_its_bytes(tmp_path):
    (tmp_path / "plain.gz").write_text("plain\n")
    (tmp_path / "packed.txt").write_bytes(gzip.compress(b"packed\n"))
    for name in ("plain.gz", "packed.txt"):
        with open_text(tmp_path / name) as stream:
            assert stream.read() == name.split(".")[0] + "\n"


def test_lines_are_numbered_and_bare(tmp_path):
    path = tmp_path / "x.txt"
    path.write_bytes("\ufeffä\r\n\nb\u2028c\rd\nlast".encode())
    # Only line feeds end lines: other tools count them so.
    assert list(numbered_lines(path)) == [(1, "ä"), (2, ""), (3, "b\u2028c\rd"), (4, "last")]
    path.write_bytes(b"")
    assert list(numbered_lines(path)) == []


def test_what_cannot_be_opened(tmp_path):
    (tmp_path / "file").write_text("")
    for path, told in (
        (tmp_path / "no.txt", "no.txt: no such file"),
        (tmp_path / "file" / "no.txt", "no.txt: no such file"),
        (tmp_path, f"{tmp_path}: is a folder, a file was expected"),
    ):
        with pytest.raises(InputError, match=told):
            open_text(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read anything")
def test_what_may_not_be_read(tmp_path):
    (tmp_path / "x.txt").write_text("")
    (tmp_path / "x.txt").chmod(0)
    with pytest.raises(InputError, match="may not be read"):
        open_text(tmp_path / "x.txt")


def test_the_line_that_is_not_utf_8(tmp_path):
    path = tmp_path / "x.txt"
    path.write_bytes(b"fine\n" + "naïve\n".encode("latin-1") + b"fine\n")
    lines = numbered_lines(path)
    assert next(lines) == (1, "fine")
    with pytest.raises(InputError, match=r"x\.txt:2: not UTF-8: byte 0xef") as caught:
        next(lines)
    assert caught.value.line == 2
    assert "iconv" in caught.value.remedy


@pytest.mark.parametrize(
    "damage",
    [
        lambda packed: packed[:-10],  # cut short
        lambda packed: packed[:-4] + b"\0\0\0\0",  # the length at the end is wrong
        lambda packed: packed[:20] + b"\xff" * 20 + packed[40:],
    ],
)
def test_a_damaged_archive(tmp_path, damage):
    text = "".join(f"{i} {i * i} {i**3}\n" for i in range(2000)).encode()
    (tmp_path / "x.gz").write_bytes(damage(gzip.compress(text)))
    with pytest.raises(InputError, match=r"x\.gz: damaged gzip data \(before byte .*\) after line \d+"):
        list(numbered_lines(tmp_path / "x.gz"))


# -- safety of writing -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o400])
def test_the_old_files_permissions_are_kept_all_the_time(tmp_path, mode):
    path = tmp_path / "x.txt"
    path.write_text("old")
    path.chmod(mode)
    with atomic_writer(path) as out:
        (temporary,) = (p for p in tmp_path.iterdir() if p != path)
        assert temporary.stat().st_mode & 0o777 & ~mode == 0
        out.write("new")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("new", mode)


def test_a_new_file_has_the_permissions_of_any_other(tmp_path):
    (tmp_path / "plain").write_text("")
    with atomic_writer(tmp_path / "x"):
        pass
    assert (tmp_path / "x").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_another_users_link_is_not_followed(tmp_path, monkeypatch):
    (tmp_path / "mine").write_text("precious")
    (tmp_path / "x.txt").symlink_to("mine")
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    if os.getuid() == 0:  # root's links are trusted by all: make it one of another user
        os.lchown(tmp_path / "x.txt", 12345, -1)
    with (
        pytest.raises(SdretrievalError, match=r"is a link to .*mine, made by another user"),
        atomic_writer(tmp_path / "x.txt"),
    ):
        pass
    assert (tmp_path / "mine").read_text() == "precious"


def test_a_circle_of_links(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(SdretrievalError, match="links lead in a circle"), atomic_writer(tmp_path / "a"):
        pass


def test_what_a_killed_writer_left_is_removed_and_a_living_ones_is_not(tmp_path):
    (tmp_path / "kept").mkdir()
    ready = tmp_path / "ready"

    def hold(folder: Path) -> int:
        """A process that is writing, until it is killed."""
        child = os.fork()
        if child == 0:
            with atomic_writer(folder / "x.txt") as out:
                out.write("half")
                ready.write_text("")
                signal.pause()
        while not ready.exists():
            time.sleep(0.01)
        ready.unlink()
        return child

    living = hold(tmp_path / "kept")
    killed = hold(tmp_path / "gone")
    os.kill(killed, signal.SIGKILL)
    os.waitpid(killed, 0)
    try:
        for folder, left in (("kept", 2), ("gone", 1)):
            assert len(list((tmp_path / folder).iterdir())) == 1
            with atomic_writer(tmp_path / folder / "another.txt") as out:
                out.write("new")
            assert len(list((tmp_path / folder).iterdir())) == left
    finally:
        os.kill(living, signal.SIGKILL)
        os.waitpid(living, 0)


def test_the_folder_is_synced_after_the_rename(tmp_path, monkeypatch):
    calls = []
    replace, fsync = os.replace, os.fsync
    monkeypatch.setattr(os, "replace", lambda *a: (calls.append("rename"), replace(*a)))
    monkeypatch.setattr(
        os, "fsync", lambda n: (calls.append("folder" if stat.S_ISDIR(os.fstat(n).st_mode) else "file"), fsync(n))
    )
    with atomic_writer(tmp_path / "x.txt") as out:
        out.write("new")
    assert calls == ["file", "rename", "folder"]


class Short(io.FileIO):
    """A file on a disk that takes three bytes at a time, and ``room`` in all."""

    room = 10**9

    def write(self, data):
        if not self.room:
            raise OSError(errno.ENOSPC, "full")
        taken = super().write(bytes(data)[: min(3, self.room)])
        self.room -= taken
        return taken


def test_appending_is_whole_or_not_at_all(tmp_path):
    with Short(tmp_path / "journal", "ab") as journal:
        append_whole(journal, b"first line\n")
        journal.room = 5
        with pytest.raises(OSError, match="full") as caught:
            append_whole(journal, b"second line\n")
        assert caught.value.filename == str(tmp_path / "journal")
        journal.room = 100
        append_whole(journal, b"third line\n")
    assert (tmp_path / "journal").read_bytes() == b"first line\nthird line\n"


# -- compressed --------------------------------------------------------------------------------------------------

KINDS = {"gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress}


@pytest.mark.parametrize("kind", KINDS)
def test_all_members_of_a_compressed_file(tmp_path, kind):
    pack, path = KINDS[kind], tmp_path / "x"
    for padding in (b"", b"\0" * 1024):
        path.write_bytes(pack(b"one\n") + pack(b"") + pack(b"two\n" * 100_000) + pack(b"three") + padding)
        assert [text for _, text in numbered_lines(path)] == ["one", *["two"] * 100_000, "three"]


@pytest.mark.parametrize("kind", KINDS)
def test_damage_anywhere_is_told(tmp_path, kind):
    """Python's own readers pass over what follows the first member of bzip2 and xz."""
    pack, path = KINDS[kind], tmp_path / "x"
    first, second = pack(b"one\n" * 1000), pack(b"two\n" * 1000)
    damaged = [first + second[:n] for n in (1, 3, len(second) - 1)] + [first + b"garbage", first + b"X" + second[1:]]
    damaged += [first[:-5] + bytes([first[-5] ^ 1]) + first[-4:] + second]
    for data in damaged:
        path.write_bytes(data)
        with pytest.raises(InputError, match=f"damaged {kind} data"):
            list(numbered_lines(path))
    for begun, told in ((b"", "it is empty"), (first[:1], "it is cut short")):
        path.with_suffix(".gz").write_bytes(begun)
        with pytest.raises(InputError, match=told):
            list(numbered_lines(path.with_suffix(".gz")))


@pytest.mark.parametrize("kind", KINDS)
def test_a_few_bytes_do_not_become_gigabytes(tmp_path, monkeypatch, kind):
    monkeypatch.setattr("sdretrieval.core.compressed.HARMLESS", 1 << 16)
    (tmp_path / "bomb").write_bytes(KINDS[kind](b"\n" * (2 << 20)))
    with pytest.raises(InputError, match="unpack to over 250 times as many") as caught:
        list(numbered_lines(tmp_path / "bomb"))
    assert caught.value.remedy == "If that is what it should hold, decompress it first."


def test_a_line_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr("sdretrieval.core.files.LONGEST_LINE", 1000)
    (tmp_path / "x").write_text("short\n" + "x" * 1000)
    with pytest.raises(InputError, match="x:2: longer than 1,000 characters"):
        list(numbered_lines(tmp_path / "x"))
