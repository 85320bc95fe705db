"""TREC files: what is read, what is refused and with which words, what is written."""

from __future__ import annotations

import gzip
import re
import time
from functools import partial

import numpy as np
import pytest

from sdretrieval.collection.records import Qrels, Ranking, Run, Topic
from sdretrieval.collection.trec import (
    read_qrels,
    read_run,
    read_times,
    read_topics,
    run_writer,
    write_qrels,
    write_run,
    write_topics,
)
from sdretrieval.core.errors import InputError, ParameterError
from sdretrieval.core.times import parse_time


@pytest.fixture
def file(tmp_path):
    """Write a file, give its path."""

    def write(text: str | bytes, name: str = "file.txt"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def refusal(read, path, *arguments, **options) -> InputError:
    with pytest.raises(InputError) as caught:
        read(path, *arguments, **options)
    error = caught.value
    assert str(error).startswith(str(path)), "the file is named first"
    assert error.remedy, "there is a way out"
    assert len(str(error)) < 1000, "a message, not a page"
    return error


def in_place(read, frame: str, line: int, *bad: tuple[str, str]) -> list:
    """Cases of the test below: bad lines in a frame of good ones."""
    return [pytest.param(read, frame.replace("{}", text), line, message, id=text[:30]) for text, message in bad]


def whole(read, *bad: tuple[str, int, str]) -> list:
    return [pytest.param(read, text, line, message, id=message[:30]) for text, line, message in bad]


# What is refused, by kind of file; each with its line and the beginning of the message.
REFUSED = [
    *in_place(
        read_run,
        "1 Q0 a 1 2.0 t\n1 Q0 b 2 1.0 t\n{}\n1 Q0 z 9 0.1 t\n",
        3,
        ("1 Q0 d 3 1.0", "expected 6 columns, found 5: '1 Q0 d 3 1.0'"),
        ("1 Q0 d e 3 1.0 t", "expected 6 columns, found 7"),
        ("1 Q0 d\u00a0e 3 1.0 t", "expected 6 columns, found 7"),
        ("1 Q0 d 3 high t", "score 'high' is not a number"),
        ("1 Q0 d 3 nan t", "score 'nan' is not a number"),
        ("1 Q0 d 3 NaN t", "score 'NaN' is not a number"),
        ("1 Q0 d 3 1_0 t", "score '1_0' is not a number"),
        ("1 Q0 d 3 0x10 t", "score '0x10' is not a number"),
        ("1 Q0 d 3 1,5 t", "score '1,5' is not a number"),
        ("1 Q0 d 3 ١ t", "score '١' is not a number"),
        ("1 Q0 d 1.5 3 t", "rank '1.5' is not a whole number"),
        ("1 Q0 a 3 0.5 t", "docid 'a' again for topic '1': first on line 1"),
        ("1 Q0 d\x07 3 1.0 t", r"docid 'd\x07' has a control character"),
        ("1 Q0 d\x00 3 1.0 t", r"docid 'd\x00' has a control character"),
        ("1\x1b[31m Q0 d 3 1.0 t", r"topic id '1\x1b[31m' has a control character"),
    ),
    *in_place(
        read_qrels,
        "1 0 a 1\n{}\n",
        2,
        ("1 0 d", "expected 4 columns, found 3"),
        ("1 0 d 1 5", "expected 4 columns, found 5"),
        ("1 0 d 1.0", "relevance '1.0' is not a whole number"),
        ("1 0 d yes", "relevance 'yes' is not a whole number"),
        ("1 0 d 1_0", "relevance '1_0' is not a whole number"),
        ("1 0 d --1", "relevance '--1' is not a whole number"),
        ("1 0 d -", "relevance '-' is not a whole number"),
        ("1 0 d ١", "relevance '١' is not a whole number"),
        ("1 0 d 1000001", "relevance '1000001' is beyond 1000000"),
        ("1 0 d -" + "9" * 100_000, "relevance '-9999"),
        ("1 0 a 1", "docid 'a' again for topic '1': first on line 1"),
        ("1 0 d\x07 1", r"docid 'd\x07' has a control character"),
    ),
    *in_place(
        read_times,
        "1\t2011-03-13\n{}\n",
        2,
        ("2 2011-03-13", "expected 2 columns at tabs, found 1"),
        ("2\t2011-03-13\tx", "expected 2 columns at tabs, found 3"),
        ("2\tsoon", "not a time: 'soon'"),
        ("2\t", "not a time: ''"),
        ("1\t2011-03-13", "topic id '1' again: first on line 1"),
    ),
    *in_place(
        read_topics,
        "1\tsalt\n{}\n",
        2,
        ("2 no tab", "expected 2 or 3 columns at tabs, found 1: '2 no tab'"),
        ("2\ta\t2011-03-13\tb", "expected 2 or 3 columns at tabs, found 4"),
        ("2\t ", "topic '2' has no text"),
        ("\ttext", "topic id '' is empty"),
        ("2 3\ttext", "topic id '2 3' has a space in it"),
        ("1\tagain", "topic '1' again: first on line 1"),
        ("2\ttext\tsoon", "not a time: 'soon'"),
    ),
    *in_place(
        read_topics,
        '{"qid": 1, "text": "salt"}\n{}\n',
        2,
        ('{"qid": 2, "text": "a"', "not JSON (Expecting"),
        ('{"qid": 2, "text": "a"} x', "not JSON (Extra data"),
        ("[" * 100_000, "not JSON ("),
        ('{"qid": %s, "text": "a"}' % ("9" * 5000), "not JSON ("),
        ('["qid", 2]', "a JSON list instead of an object"),
        ('{"text": "a", "n": 1}', "no 'qid' or 'id' or 'query_id' in the topic, only 'text', 'n'"),
        ("{}", "no 'qid' or 'id' or 'query_id' in the topic, only nothing"),
        ('{"qid": 2}', "no 'text' or 'query' or 'title' in the topic, only nothing"),
        ('{"qid": true, "text": "a"}', "topic id True is neither text nor a whole number"),
        ('{"qid": null, "text": "a"}', "topic id None is neither"),
        ('{"qid": 2.5, "text": "a"}', "topic id 2.5 is neither"),
        ('{"qid": "", "text": "a"}', "topic id '' is empty"),
        ('{"qid": "a b", "text": "a"}', "topic id 'a b' has a space in it"),
        ('{"qid": 2, "text": ["a"]}', "'text' of topic 2 is not text but ['a']"),
        ('{"qid": 2, "text": ""}', "topic '2' has no text"),
        ('{"qid": 2, "text": "\\ud800"}', "topic 2 has half a surrogate pair"),
        ('{"qid": 2, "text": "a", "x": "\\udc00"}', "topic 2 has half a surrogate pair"),
        ('{"qid": 2, "text": "a", "time": "soon"}', "not a time: 'soon'"),
        ('{"qid": 2, "text": "a", "time": true}', "not a time: True"),
        ('{"qid": 2, "text": "a", "time": {}}', "not a time: {}"),
        ('{"qid": "1", "text": "a"}', "topic '1' again: first on line 1"),
    ),
    *whole(  # TREC
        read_topics,
        ("<top>\n<num> 1\n<title> a\n<top>\n", 4, "<top> inside the topic that begins on line 1"),
        ("<top>\n<num> 1\n<title> a\n", 1, "<top> is never closed"),
        ("<top>\n</top>\n</top>\n", 1, "topic without a <num>"),
        ("<top>\n<num>1<title>a</top>\n</top>\n", 3, "</top> without <top>"),
        ("<top>\n<title> a\n</top>\n", 1, "topic without a <num>"),
        ("<top>\n<num> Number:\n<title> a\n</top>\n", 1, "topic without a <num>"),
        ("<top>\n<num> 1\n<desc> a\n</top>\n", 1, "topic '1' has no field 'title', only 'desc'"),
        ("<top>\n<num> 1\n<title>\n</top>\n", 1, "topic '1' has no text"),
        ("<top>\n<num> 1\n<title> a\n<title> b\n</top>\n", 4, "<title> twice in the topic"),
        ("<top>\n<num> 1 2\n<title> a\n</top>\n", 1, "topic id '1 2' has a space in it"),
        ("<top>\n<num>1<title>a</top>\n<top><num>01<title>b</top>\n", 3, "topic '1' again: first on line 1"),
        ("<top>\n<num>1<title>a</top>\nsurplus\n", 3, "text 'surplus' outside <top>"),
        ("<top>\nsurplus\n<num>1<title>a</top>\n", 2, "text 'surplus' in no field of its topic"),
        ("<top>\n<num>1<title>a</top>\n<num>2\n", 3, "<num> outside <top>"),
        ("<top>\n<num>1<title>a\n<querytime> soon\n</top>\n", 3, "not a time: 'soon'"),
    ),
    *whole(  # SMART
        read_topics,
        (".I\n.W\nsalt\n", 1, "topic id '' is empty"),
        (".I 1\nsalt\n", 2, "'salt' before .W"),
        (".I 1\n.W\n\n.I 2\n.W\ntea\n", 1, "topic '1' has no text"),
        (".I 1\n.W\nsalt\n.I 1\n.W\ntea\n", 4, "topic '1' again: first on line 1"),
        (".I 1 2\n.W\nsalt\n", 1, "topic id '1 2' has a space in it"),
    ),
    *whole(  # CACM
        read_topics,
        ("<DOC>\n<DOCNO> 1 </DOCNO> a\n<DOC>\n", 3, "<DOC> inside the topic that begins on line 1"),
        ("<DOC>\n<DOCNO> 1 </DOCNO> a\n", 1, "<DOC> is never closed"),
        ("<DOC>\n a\n</DOC>\n", 1, "topic without its <DOCNO>"),
        ("<DOC><DOCNO>1</DOCNO>a</DOC>\n</DOC>\n", 2, "</DOC> alone"),
        ("<DOC><DOCNO>1</DOCNO>a</DOC>\nb\n", 2, "text 'b' outside <DOC>"),
        ("<DOC><DOCNO> </DOCNO>a</DOC>\n", 1, "topic id '' is empty"),
        ("<DOC><DOCNO>1</DOCNO> </DOC>\n", 1, "topic '1' has no text"),
    ),
    *whole(read_topics, ("\nsalt mines\n", 2, "cannot tell the topic format from 'salt mines'")),
    *whole(partial(read_topics, format="smart"), ("salt\n.I 1\n", 1, "'salt' before the first .I")),
]


@pytest.mark.parametrize(("read", "text", "line", "message"), REFUSED)
def test_what_is_bad_is_named_with_its_line(file, read, text, line, message):
    path = file(text)
    error = refusal(read, path)
    assert error.line == line
    assert str(error).startswith(f"{path}:{line}: {message}")


# ------------------------------------------------------------------------------------------------- runs

RUN = "2 Q0 a 1 1.5 mine\n2 Q0 b 2 2.5 mine\n1\tQ0\tc\t1\t-3e-2\tmine\n"
READ = {"2": [("b", 2.5), ("a", 1.5)], "1": [("c", -0.03)]}  # topics as in the file, documents in rank order


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (RUN, READ),
        (gzip.compress(RUN.encode()), READ),  # told by content
        ("\ufeff" + RUN.replace("\n", "\r\n\r\n"), READ),  # Windows line ends, byte order mark, empty lines
        ("1 Q0 a 1 1 t\n2 Q0 a 1 1 t\n1 Q0 b 2 2 t\n", {"1": [("b", 2), ("a", 1)], "2": [("a", 1)]}),  # in pieces
        ("1 Q0 a 1 -inf t\n1 Q0 b 2 1 t\n", {"1": [("b", 1), ("a", -np.inf)]}),
        (f"1 Q0 a {'9' * 10_000} {'9' * 10_000} t\n1 Q0 b 1 1 t\n", {"1": [("a", np.inf), ("b", 1)]}),
    ],
    ids=["plain", "gzip", "windows", "pieces", "infinite", "enormous"],
)
@pytest.mark.parametrize("name", ["run.gz", "run.txt"])
def test_runs_that_are_read(file, text, found, name):
    run = read_run(file(text, name))
    assert [(qid, list(ranking)) for qid, ranking in run.items()] == list(found.items())
    assert run.tag == ("mine" if found is READ else "t")


@pytest.mark.parametrize("text", ["", "\n \n\t\n", "\ufeff"])
@pytest.mark.parametrize("read", [read_run, read_qrels, read_topics, read_times])
def test_an_empty_file_is_refused(file, read, text):
    assert "empty" in str(refusal(read, file(text)))


@pytest.mark.parametrize("read", [read_run, read_qrels, read_topics, read_times])
def test_what_is_not_there_or_not_text(file, tmp_path, read):
    assert "no such file" in str(refusal(read, tmp_path / "none"))
    with pytest.raises(InputError, match="is a folder"):
        read(tmp_path)
    error = refusal(read, file(b"1\tok\n2\tcaf\xe9\n" if read is read_topics else b"caf\xe9\n"))
    assert "not UTF-8: byte 0xe9" in str(error)


@pytest.mark.parametrize(
    ("read", "line"),
    [
        (read_run, "1 Q0 d{} 1 1 t\n"),
        (read_qrels, "1 0 d{} 1\n"),
        (read_topics, "{}\tsalt\n"),
        (read_times, "{}\t2011\n"),
    ],
)
def test_damaged_gzip(file, read, line):
    whole = gzip.compress("".join(line.format(i) for i in range(1000)).encode())
    assert read(file(whole))
    assert "damaged gzip" in str(refusal(read, file(whole[:-100])))
    assert "damaged gzip" in str(refusal(read, file(b"\x1f\x8b\x08\x00" + b"\xff" * 40)))


def test_a_very_long_line_gives_a_short_message_and_the_remedy_the_form(file):
    assert "expected 6 columns, found 1" in str(refusal(read_run, file("x" * 5_000_000)))
    assert "score" in str(refusal(read_run, file(f"1 Q0 a 1 {'9' * 1_000_000}x t")))
    assert "qid Q0 docid rank score tag" in str(refusal(read_run, file("1 2 3\n")))


def test_written_run_line_by_line(tmp_path):
    path = tmp_path / "deep" / "run.trec"
    run = Run({"7": Ranking(["a", "b", "c"], [0.1, 2.0, 0.1]), "3": Ranking([], [])}, "mine")
    for tag, told in ((None, "mine"), ("other", "other")):
        write_run(path, run, tag)
        assert path.read_text() == f"7 Q0 b 1 2.0 {told}\n7 Q0 c 2 0.1 {told}\n7 Q0 a 3 0.1 {told}\n"


def test_a_run_written_topic_by_topic_is_there_when_it_is_whole(tmp_path):
    path, found = tmp_path / "run.trec", {"7": Ranking(["a"], [1.0]), "3": Ranking([], []), "5": Ranking(["b"], [2.0])}
    with run_writer(path, "mine") as add:
        for qid, ranking in found.items():
            assert not path.exists()
            add(qid, ranking)
    whole = path.read_bytes()
    write_run(path, Run(found, "mine"))
    assert path.read_bytes() == whole
    with pytest.raises(KeyboardInterrupt), run_writer(path, "other") as add:
        add("8", found["7"])
        raise KeyboardInterrupt
    for bad in ("a b", ""):
        with pytest.raises(ParameterError, match="could not be read back"), run_writer(path, "other") as add:
            add(bad, found["7"])
        with pytest.raises(ParameterError, match="could not be read back"), run_writer(path, bad) as add:
            add("8", found["7"])
    assert [p.name for p in tmp_path.iterdir()] == ["run.trec"] and path.read_bytes() == whole


@pytest.mark.parametrize("bad", ["a b", "", "a\tb", "a\nb", " a", "a\u2003b", "a\u2028b", "a\x00", "\ud800"])
def test_what_would_corrupt_a_run_is_refused_and_leaves_the_old_file(tmp_path, bad):
    path = tmp_path / "run.trec"
    path.write_text("old")
    good = Ranking(["a"], [1.0])
    for run, tag in [
        (Run({"1": good, "2": Ranking([bad, "z"], [1.0, 2.0])}, "t"), None),
        (Run({"1": good, bad: good}, "t"), None),
        (Run({"1": good}, bad), None),
        (Run({"1": good}, "t"), bad),
    ]:
        with pytest.raises(ParameterError, match="could not be read back"):
            write_run(path, run, tag)
    with pytest.raises(ParameterError, match="could not be read back"):
        write_qrels(path, Qrels({"1": {"a": 1, bad: 1}}))
    with pytest.raises(ParameterError, match="could not be read back"):
        write_topics(path, [Topic(bad, "words")])
    assert [p.name for p in tmp_path.iterdir()] == ["run.trec"]
    assert path.read_text() == "old"


@pytest.mark.parametrize(
    "write",
    [
        lambda path: write_run(path, Run({"1": Ranking([], [])}, "t")),
        lambda path: write_run(path, Run({}, "t")),
        lambda path: write_qrels(path, Qrels({"1": {}})),
        lambda path: write_topics(path, []),
    ],
    ids=["run of empty lists", "run", "qrels", "topics"],
)
def test_nothing_to_write_is_said_and_not_written(tmp_path, write):
    with pytest.raises(ParameterError, match="nothing to write"):
        write(tmp_path / "file")
    assert not list(tmp_path.iterdir())


# ------------------------------------------------------------------------------------------------ qrels


def test_qrels(file):
    qrels = read_qrels(file("1 0 a 1\n1 0 b 0\n\n2\t0\ta\t-1\n1 0 c +2\n"))
    assert dict(qrels) == {"1": {"a": 1, "b": 0, "c": 2}, "2": {"a": -1}}


def test_written_qrels(tmp_path):
    write_qrels(tmp_path / "q.gz", Qrels({"1": {"a": 1, "b": 0}, "2": {}}))
    assert gzip.decompress((tmp_path / "q.gz").read_bytes()) == b"1 0 a 1\n1 0 b 0\n"


@pytest.mark.parametrize("relevance", [1.5, 10**7, 10**5000, float("nan")], ids=["1.5", "1e7", "huge", "nan"])
def test_relevance_that_could_not_be_read_back_is_not_written(tmp_path, relevance):
    with pytest.raises(ParameterError, match="must be a whole number"):
        write_qrels(tmp_path / "q", {"1": {"a": relevance}})
    assert not list(tmp_path.iterdir())


# ----------------------------------------------------------------------------------------------- topics

TREC = """<?xml version="1.0"?>
<top>
<head> Tipster Topic Description
<num> Number:  051
<dom> Domain:  Harbours
<title> Topic:  Ferry strikes &amp; harbour closures

<desc> Description:
Document reports a strike that closed
a harbour, at < 3 days' notice.

<narr> Narrative:
Relevant: what <b>closed</b> and when.
</top>

<top>
<num> Number: 52 </num>
<title>Salt mines</title> <desc>Where is salt mined?</desc>
<narr></narr>
</top>
"""


def test_trec_topics_closed_and_unclosed(file):
    first, second = read_topics(file(TREC))
    assert (first.qid, first.text, first.time) == ("51", "Ferry strikes & harbour closures", None)
    assert first.fields == {
        "head": "Tipster Topic Description",
        "dom": "Harbours",
        "title": "Ferry strikes & harbour closures",
        "desc": "Document reports a strike that closed a harbour, at < 3 days' notice.",
        "narr": "Relevant: what <b>closed</b> and when.",
    }
    assert (second.qid, second.text) == ("52", "Salt mines")
    assert second.fields["desc"] == "Where is salt mined?"


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("desc", "Where is salt mined?"),
        ("title+desc", "Salt mines Where is salt mined?"),
        ("Title+Description", "Salt mines Where is salt mined?"),
        ("desc+title", "Where is salt mined? Salt mines"),
        ("title+desc+narr", "Salt mines Where is salt mined?"),
    ],
)
def test_fields_of_trec_topics(file, field, text):
    assert read_topics(file(TREC), field=field)[1].text == text


def test_trec_topics_as_people_write_them(file):
    assert [topic.qid for topic in read_topics(file(TREC), qids="as-written")] == ["051", "52"]
    capitals = "<TOP><NUM>7</NUM><TITLE>salt</TITLE></TOP>\n"
    assert read_topics(file(capitals)) == [Topic("7", "salt", None, {"title": "salt"})]
    assert read_topics(file("<top><num>7<title>Salt: a history</top>"))[0].text == "Salt: a history"


MICROBLOG = """<top>
<num> Number: MB001 </num>
<query> ferry strike </query>
<querytime> Sun Mar 13 12:00:00 +0000 2011 </querytime>
<querytweettime> 46000000000000001 </querytweettime>
</top>
<top>
<num> Number: MB110</num>
<title> salt prices </title>
<querytime>Mon Mar 14 00:00:00 +0000 2011</querytime>
<querytweettime>46200000000000002</querytweettime>
</top>
"""


@pytest.mark.parametrize("format", [None, "trec", "microblog"])
def test_microblog_topics_are_called_as_in_their_qrels(file, format):
    first, second = read_topics(file(MICROBLOG), format)
    assert (first.qid, first.text, first.time) == ("1", "ferry strike", parse_time("2011-03-13T12:00:00Z"))
    assert (second.qid, second.text, second.time) == ("110", "salt prices", parse_time("2011-03-14"))
    assert first.fields["querytweettime"] == "46000000000000001"


def test_microblog_topics_need_their_time_when_the_format_is_given(file):
    path = file("<top>\n<num> MB001\n<query> salt\n</top>")
    assert "topic 'MB001' has no <querytime>" in str(refusal(read_topics, path, "microblog"))
    assert read_topics(path)[0].time is None
    assert read_topics(path, qids="as-written")[0].qid == "MB001"


def test_tsv(file):
    topics = read_topics(file("007\tsalt  mines\n\nx-2\tferry\t2011-03-13\n3\ttea\t\n"))
    assert topics == [Topic("007", "salt  mines"), Topic("x-2", "ferry", parse_time("2011-03-13")), Topic("3", "tea")]
    assert read_topics(file("qid\tquery\n1\tsalt\n")) == [Topic("1", "salt")]


def test_jsonl(file):
    topics = read_topics(
        file(
            '{"qid": "a", "text": " salt ", "time": "2011-03-13", "desc": "More.", "n": [1, null]}\n'
            '{"id": 7, "query": "tea", "time": 1300017600}\n\n'
            '{"query_id": "8", "title": "wine", "time": null, "desc": null}\n'
        )
    )
    assert topics == [
        Topic("a", "salt", parse_time("2011-03-13"), {"desc": "More.", "n": "[1, null]"}),
        Topic("7", "tea", parse_time("2011-03-13T12:00:00Z")),
        Topic("8", "wine"),
    ]


def test_jsonl_fields_can_be_chosen(file):
    path = file('{"qid": "1", "query": "salt", "Description": "Where is it mined?"}\n')
    assert read_topics(path, field="desc")[0].text == "Where is it mined?"
    assert read_topics(path, field="title+desc")[0].text == "salt Where is it mined?"
    assert "has no field 'narr'" in str(refusal(read_topics, path, field="narr"))


SMART = """.I 001
.T
Mines
.A
Miner, A.
.W
Where is salt
.NET framework, and .W3C
.I 12
.W
 tea
"""


def test_smart(file):
    first, second = read_topics(file(SMART))
    assert (first.qid, first.text) == ("1", "Where is salt .NET framework, and .W3C")
    assert first.fields["a"] == "Miner, A."
    assert (second.qid, second.text) == ("12", "tea")


CACM = """<DOC>
<DOCNO> 1 </DOCNO>


 Where is salt
mined, if x < y?

</DOC>
<DOC>
<DOCNO> 2 </DOCNO> tea </DOC>
"""


def test_cacm(file):
    assert read_topics(file(CACM)) == [Topic("1", "Where is salt mined, if x < y?"), Topic("2", "tea")]


@pytest.mark.shared
def test_anserinis_cacm_file_is_the_tsv_that_was_made_from_it(shared_data):
    """../shared/data/cacm/README.md: 64 topics; topics.tsv is the same data in the uniform layout."""
    topics = read_topics(shared_data / "cacm" / "topics.cacm.txt")
    assert len(topics) == 64
    assert topics == read_topics(shared_data / "cacm" / "topics.tsv")


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "topics", "judged", "pairs"),
    [
        ("cacm", 64, 52, 796),
        ("cranfield", 225, 225, 1837),
        ("npl", 93, 93, 2083),
        ("microblog2011", 50, 49, 60129),
        ("microblog2013", 60, 60, 71279),
    ],
)
def test_real_topics_and_qrels(shared_data, name, topics, judged, pairs):
    """Topics and pairs as in ../shared/data/README.md."""
    folder = shared_data / name
    read = read_topics(folder / "topics.tsv")
    qrels = read_qrels(folder / "qrels.txt")
    assert set(qrels) <= {topic.qid for topic in read}
    assert (len(read), len(qrels), sum(map(len, qrels.values()))) == (topics, judged, pairs)


@pytest.mark.shared
@pytest.mark.parametrize("name", ["microblog2011", "microblog2013"])
def test_real_query_times_and_runs(shared_data, name):
    folder = shared_data / name
    topics = read_topics(folder / "topics.tsv", times=folder / "topics.times.tsv")
    assert all(topic.time is not None for topic in topics)
    for path in sorted((folder / "runs").iterdir()):
        run = read_run(path)
        assert set(run) <= {topic.qid for topic in topics}
        assert max(map(len, run.values())) <= 1000


@pytest.mark.parametrize(
    ("text", "format"),
    [
        (TREC, "trec"),
        (MICROBLOG, "microblog"),
        ("1\ta\n", "tsv"),
        ('{"id": 1, "text": "a"}', "jsonl"),
        (SMART, "smart"),
        (CACM, "cacm"),
    ],
    ids=["trec", "microblog", "tsv", "jsonl", "smart", "cacm"],
)
def test_the_format_is_found(file, text, format):
    assert read_topics(file(text)) == read_topics(file(text), format)


def test_the_format_can_be_forced(file):
    path = file('{"a"\tsalt\n')
    assert read_topics(path, "tsv") == [Topic('{"a"', "salt")]
    assert "not JSON" in str(refusal(read_topics, path))


def test_a_file_without_topics_in_the_forced_format(file):
    assert "no topics in this file, read as tsv" in str(refusal(read_topics, file("qid\tquery\n"), "tsv"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "xml"}, "unknown topic format 'xml'"),
        ({"field": "desc"}, "tsv topics have one text, but field 'desc'"),
        ({"qids": "short"}, "qids must be 'plain' or 'as-written', got 'short'"),
    ],
)
def test_parameters_of_read_topics(file, options, message):
    with pytest.raises(ParameterError, match=message):
        read_topics(file("1\tsalt\n"), **options)


def test_times_are_merged_and_win(file):
    topics = file("1\tsalt\t2000-01-01\n2\ttea\t2000-01-02\n3\twine\n", "topics.tsv")
    times = file("1\t2011-03-13T12:00:00Z\n3\t2011-03-14\n", "times.tsv")
    assert [topic.time for topic in read_topics(topics, times=times)] == [
        parse_time(text) for text in ("2011-03-13T12:00:00Z", "2000-01-02", "2011-03-14")
    ]
    assert read_times(times) == {"1": parse_time("2011-03-13T12"), "3": parse_time("2011-03-14")}


def test_times_know_microblog_topics_by_either_name(file):
    times = file("MB001\t2011-03-20\n110\t2011-03-21\n", "times.tsv")
    topics = read_topics(file(MICROBLOG), times=times)
    assert [topic.time for topic in topics] == [parse_time("2011-03-20"), parse_time("2011-03-21")]


def test_times_of_further_topics_are_told_and_of_no_topic_refused(file):
    topics, times = file("1\tsalt\n", "topics.tsv"), file("1\t2011-03-13\n9\t2011-03-13\n", "times.tsv")
    further: list[str] = []
    assert read_topics(topics, times=times, further=further)[0].time == parse_time("2011-03-13")
    assert further == ["9"] and read_topics(topics, times=times) == read_topics(topics, times=times, further=[])
    others = file("8\t2011-03-13\n9\t2011-03-13\n", "others.tsv")
    with pytest.raises(InputError, match=re.escape(f"{others}:1: topic '8' is not in {topics}")):
        read_topics(topics, times=others)


TOPICS = [
    Topic("1", "salt mines", 1_300_017_600_250, {"desc": "Where?\n", "qid": "x", "fields": "y"}),
    Topic("a-2", "thé à la menthe"),
]


@pytest.mark.parametrize("name", ["topics.jsonl", "topics.jsonl.gz", "topics.tsv", "topics.txt.gz"])
def test_topics_come_back_whole_or_in_tsv_without_their_fields(tmp_path, name):
    write_topics(tmp_path / name, iter(TOPICS))
    whole = TOPICS if "jsonl" in name else [Topic(t.qid, t.text, t.time) for t in TOPICS]
    assert read_topics(tmp_path / name) == whole


def test_written_topics_line_by_line(tmp_path):
    write_topics(tmp_path / "t", [Topic("1", " salt ", 0), Topic("2", "tea")])
    assert (tmp_path / "t").read_text() == "1\tsalt\t1970-01-01T00:00:00Z\n2\ttea\n"
    write_topics(tmp_path / "t.jsonl", [Topic("1", "salt", 0)])
    assert (tmp_path / "t.jsonl").read_text() == '{"qid": "1", "text": "salt", "time": "1970-01-01T00:00:00Z"}\n'


@pytest.mark.parametrize(
    ("topics", "ending", "message"),
    [
        ([Topic("1", "a\tb")], "tsv", "would not survive in a TSV file"),
        ([Topic("1", "a\nb")], "tsv", "would not survive in a TSV file"),
        ([Topic("qid", "query")], "tsv", "would not survive in a TSV file"),
        ([Topic("1", " ")], "tsv", "needs a text"),
        ([Topic("1", "\ud800")], "jsonl", "needs a text in Unicode"),
        ([Topic("1", "a", None, {"x": "\ud800"})], "jsonl", "is not Unicode text"),
        ([Topic("1", "a"), Topic("1", "b")], "tsv", "two topics have the same id"),
    ],
)
def test_topics_that_are_not_written(tmp_path, topics, ending, message):
    with pytest.raises(ParameterError, match=message):
        write_topics(tmp_path / f"t.{ending}", topics)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "text",
    [
        "<top>" + "<b>" * 300_000,
        "<top>" + "<a " * 300_000,
        "<!" + "> " * 300_000,
        "<top><num>1<title>" + " " * 500_000 + "x",
        "<DOC><DOCNO>" + " " * 500_000,
        ".I " + " " * 500_000 + "\n.W\n" + "." * 500_000,
        "{" * 500_000,
        "1\t" + "\t" * 500_000,
        "\x00" * 500_000,
    ],
    ids=["tags", "open tags", "comment", "title", "docno", "smart", "json", "tabs", "nul"],
)
def test_hostile_topics_end_in_an_error_or_in_topics(file, text):
    """A tenth of a second; a pattern that looks back, quadratic in half a million characters, takes an hour."""
    start = time.process_time()
    try:
        assert read_topics(file(text))
    except InputError as error:
        assert len(str(error)) < 1000
    assert time.process_time() - start < 100
