"""TREC SGML in the shapes the TREC disks have."""

from __future__ import annotations

import time

import pytest
from corpus_reading import check_refused, read

from sdretrieval.collection.corpus import Problems
from sdretrieval.collection.corpus.trec_sgml import plain
from sdretrieval.core.errors import InputError

# Made up, in the manner of the Financial Times and Los Angeles Times disks.
NEWS = """\
<DOC>
<DOCNO> FT911-1 </DOCNO>
<PROFILE>_AN-BEOA7AAIFT</PROFILE>
<DATE>910514
</DATE>
<HEADLINE>
FT  14 MAY 91 / Tea prices rise
</HEADLINE>
<TEXT>
Prices of <F P=105> tea </F> at AT&amp;T rose.
<P>A new paragraph, 3 < 4.</P>
</TEXT>
<PUB>The Paper
</PUB>
</DOC>

<DOC>
<DOCNO> LA010189-0001 </DOCNO>
<DATE>
<P>
January 1, 1989, Sunday, Home Edition
</P>
</DATE>
<TEXT>
Second.
</TEXT>
<TEXT>
Third.
</TEXT>
</DOC>
"""


@pytest.fixture
def news(tmp_path):
    path = tmp_path / "ft911_1"  # the disks' names have no extension
    path.write_text(NEWS)
    return path


def test_documents_fields_lines_and_text_in_the_order_of_the_document(news):
    first, second = read(news)
    assert (first.docid, first.line, second.docid, second.line) == ("FT911-1", 1, "LA010189-0001", 17)
    assert first.fields["pub"] == "The Paper"
    assert first.fields["headline"] == "FT  14 MAY 91 / Tea prices rise"
    assert "text" not in first.fields
    assert " ".join(first.contents.split()) == (
        "910514 FT 14 MAY 91 / Tea prices rise Prices of tea at AT&T rose. A new paragraph, 3 < 4."
    )
    assert " ".join(second.contents.split()) == "January 1, 1989, Sunday, Home Edition Second. Third."
    first, _ = read(news, contents=("Text", "HEADLINE"))  # tags may be chosen, whatever their case
    assert first.contents.startswith("FT  14 MAY 91")
    assert "910514" not in first.contents


@pytest.mark.parametrize(
    ("part", "pattern", "time"),
    [
        (0, "%y%m%d", 674179200000),  # Financial Times; date -d 1991-05-14T00:00:00Z +%s
        (1, "%B %d, %Y*", 599616000000),  # Los Angeles Times; 1989-01-01
    ],
)
def test_dates_of_the_disks(tmp_path, part, pattern, time):
    cut = NEWS.index("<DOC>", 10)
    (tmp_path / "a.sgml").write_text((NEWS[:cut], NEWS[cut:])[part])
    (document,) = read(tmp_path / "a.sgml", date="DATE", date_format=pattern)
    assert document.time == time


def test_id_in_the_opening_tag_and_all_on_one_line(tmp_path):
    path = tmp_path / "a.trec"
    first, second = '<DOC id="NYT_1"><TEXT>One</TEXT></DOC>', "<doc><docno>2</docno><text>Two</text></doc>"
    path.write_text(first + second + "\n")
    assert [(document.docid, document.contents) for document in read(path)] == [("NYT_1", "One"), ("2", "Two")]


def test_latin_1(tmp_path):
    path = tmp_path / "a.trec"
    path.write_bytes("<DOC>\n<DOCNO>1</DOCNO>\n<TEXT>\ncafé\n</TEXT>\n</DOC>\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"a\.trec:4: not utf-8 text: byte 0xe9"):
        read(path)
    assert read(path, encoding="latin-1")[0].contents == "café"


@pytest.mark.parametrize(
    ("bad", "line", "told"),
    [
        ("<DOC>\n<TEXT>x</TEXT>\n</DOC>\n", 4, "this <DOC> has no <DOCNO>"),
        ("<DOC>\n<DOCNO>2</DOCNO>\n<BODY>x</BODY>\n</DOC>\n", 4, "other tags in it: <BODY>"),
        ("<DOC>\n<DOCNO>2</DOCNO>\n<TEXT>x</TEXT>\n", 4, "not closed (the file ends)"),
        ("<DOC>\n<DOCNO>2 3</DOCNO>\n<TEXT>x</TEXT>\n</DOC>\n", 4, "the id '2 3' has a blank in it"),
        ("<DOC>\n<DOCNO></DOCNO>\n<TEXT>x</TEXT>\n</DOC>\n", 4, "the id is empty"),
    ],
)
def test_bad_documents(tmp_path, bad, line, told):
    path = tmp_path / "a.trec"
    path.write_text("<DOC>\n<DOCNO>1</DOCNO> <TEXT>x</TEXT>\n</DOC>\n" + bad)
    check_refused(path, line, told)


def test_tags_that_are_not_closed_or_not_there(tmp_path):
    path = tmp_path / "a.trec"
    path.write_text("<DOC>\n<DOCNO>1</DOCNO><TEXT>x</TEXT>\n<DOC>\n<DOCNO>2</DOCNO><TEXT>y</TEXT>\n</DOC>\n")
    with pytest.raises(InputError, match=r"a\.trec:1: the <DOC> .* not closed \(another begins on line 3\)"):
        read(path)
    assert [document.docid for document in read(path, problems=Problems(skip=True))] == ["2"]
    path.write_text("<DOC>\n<DOCNO>1</DOCNO>\n<HR>\n<TEXT>one<BR>two</TEXT>\n</DOC>\n")
    assert read(path)[0].contents == "one two"  # a tag that is never closed is text
    path.write_text("nothing of the sort\n")
    with pytest.raises(InputError, match="no <DOC> in it"):
        read(path)


@pytest.mark.parametrize(
    ("marked", "text"),
    [
        ("AT&amp;T &lt;b&gt;", "AT&T <b>"),
        ("half<b>hearted</b>", "halfhearted"),
        ("one<P>two", "one two"),
        ("<!-- PJG ITAG l=90 g=1 f=1 -->seen", "seen"),
        ("3 < 4 and <3>", "3 < 4 and <3>"),
    ],
)
def test_plain_text_of_markup(marked, text):
    assert plain(marked) == text


@pytest.mark.parametrize("piece", ["<!", "<DOC ", "<DOC>", "<DOC></DOC>", "</DOC ", "<TEXT ", "</", "<a>"])
def test_long_lines_take_linear_time(tmp_path, piece):
    """Of 200 KB; what is quadratic takes minutes (the guard is generous: it is not a measurement)."""
    (tmp_path / "a.trec").write_text(
        "<DOC><DOCNO>1</DOCNO><TEXT>tea" + piece * (200_000 // len(piece)) + "</TEXT></DOC>"
    )
    began = time.process_time()
    assert len(read(tmp_path / "a.trec", problems=Problems(skip=True))) <= 1
    assert time.process_time() - began < 30
