"""What is written is read back, and no file whatever ends in anything but records or a clear error."""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sdretrieval.collection.records import Qrels, Ranking, Run, Topic
from sdretrieval.collection.trec import (
    TOPIC_FORMATS,
    read_qrels,
    read_run,
    read_times,
    read_topics,
    write_qrels,
    write_run,
    write_topics,
)
from sdretrieval.core.errors import InputError, ParameterError
from sdretrieval.core.times import format_time, parse_time

quick = settings(max_examples=40, deadline=None)

# Any word of Unicode: neither spaces nor controls nor half characters.
words = st.text(st.characters(exclude_categories=("Z", "C")), min_size=1, max_size=8)
scores = st.floats(allow_nan=False)
rankings = st.dictionaries(words, scores, min_size=1, max_size=12).map(
    lambda scored: Ranking(list(scored), list(scored.values()))
)
grades = st.dictionaries(words, st.integers(-1_000_000, 1_000_000), min_size=1, max_size=9)
runs = st.builds(Run, st.dictionaries(words, rankings, min_size=1, max_size=4), words)
moments = st.integers(parse_time("0001-01-01"), parse_time("9999-12-31"))
texts = st.text(st.characters(exclude_categories=("C", "Zl", "Zp")), min_size=1).map(str.strip).filter(bool)
any_texts = st.text(st.characters(exclude_categories=("Cs",)), min_size=1).map(str.strip).filter(bool)
names = any_texts | st.sampled_from(["qid", "text", "time", "fields"])
fields = st.dictionaries(names, st.text("ab\n\t\x00é"))


def through(write, read, value, name="file"):
    """Write to a file of its own, read it back."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / name, value)
        return read(Path(folder) / name)


@pytest.mark.parametrize("name", ["run.trec", "run.trec.gz"])
@quick
@given(run=runs)
def test_runs_come_back_to_the_last_bit(name, run):
    again = through(write_run, read_run, run, name)
    assert again == run
    assert list(again) == list(run)


@quick
@given(runs)
def test_ranks_count_up_from_one_and_lines_are_in_rank_order(run):
    text = through(write_run, Path.read_text, run)
    rows = [line.split() for line in text.split("\n")[:-1]]
    for qid in run:
        mine = [row for row in rows if row[0] == qid]
        assert [int(row[3]) for row in mine] == list(range(1, len(mine) + 1))
        assert [row[2] for row in mine] == run[qid].docids


@quick
@given(runs, st.randoms())
def test_the_order_of_lines_does_not_matter(run, random):
    def shuffled(path, run):
        write_run(path, run)
        lines = path.read_text().split("\n")[:-1]
        random.shuffle(lines)
        path.write_text("\n".join(lines))

    assert dict(through(shuffled, read_run, run)) == dict(run)


@pytest.mark.parametrize("name", ["qrels.txt", "qrels.txt.gz"])
@quick
@given(judgments=st.dictionaries(words, grades, min_size=1, max_size=4))
def test_qrels_come_back(name, judgments):
    assert through(write_qrels, read_qrels, Qrels(judgments), name) == Qrels(judgments)


@quick
@given(st.lists(st.builds(Topic, words, any_texts, st.none() | moments, fields), min_size=1, unique_by=lambda t: t.qid))
def test_jsonl_topics_come_back_whole(topics):
    assert through(write_topics, read_topics, topics, "topics.jsonl") == topics


@quick
@given(st.lists(st.builds(Topic, words, texts, st.none() | moments), min_size=1, unique_by=lambda t: t.qid))
def test_tsv_topics_come_back(topics):
    def read(path):
        return read_topics(path, "tsv")  # told, because an id may look like the beginning of another format

    assert through(write_topics, read, topics) == topics


@settings(max_examples=150, deadline=None)
@given(st.text() | st.text("0123456789-+:.TZ ,JanFebSunGMT") | st.integers() | st.floats() | st.binary())
def test_any_value_is_a_time_or_refused(value):
    try:
        ms = parse_time(value)
    except ValueError as error:
        assert len(str(error)) < 500
    else:
        assert parse_time(format_time(ms)) == ms


_pieces = st.sampled_from(
    [
        *("<top>", "</top>", "<num>", "</num>", "<title>", "<desc>", "<querytime>", "Number:"),
        *("<DOC>", "</DOC>", "<DOCNO>", "</DOCNO>", "\n.I 1\n", "\n.I", "\n.W\n", "{", "}", '"qid"', ":"),
        *('{"qid": 1, "text": "a"}', "1", "2", "Q0", "d", "0.5", "nan", "-inf", "t", "é", "2011-03-13"),
        *(" ", "\t", "\n", "\r", "\x00", "\u2028"),
    ]
)
_files = st.lists(_pieces, max_size=40).map(lambda pieces: "".join(pieces).encode()) | st.binary()


@pytest.mark.parametrize(
    "read",
    [
        read_run,
        read_qrels,
        read_times,
        read_topics,
        *(lambda path, format=format: read_topics(path, format) for format in TOPIC_FORMATS),
    ],
    ids=["run", "qrels", "times", "topics", *TOPIC_FORMATS],
)
@settings(max_examples=100, deadline=None)
@given(data=_files, zipped=st.booleans())
@example(data=b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\xff", zipped=False)
def test_any_file_is_read_or_refused_clearly(read, data, zipped):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_bytes(gzip.compress(data) if zipped else data)
        try:
            found = read(path)
        except (InputError, ParameterError) as error:
            assert len(str(error)) < 1000 + len(str(path))
        else:
            assert len(found) > 0
