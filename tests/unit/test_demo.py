"""The demo collection: the same everywhere, complete, and misleading in the ways docs/DEMO.md says."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter, defaultdict
from datetime import datetime
from statistics import median

import pytest

from sdretrieval.collection.trec import read_qrels, read_topics
from sdretrieval.core.errors import ParameterError
from sdretrieval.demo import DemoCollection, DemoFiles, generate_demo, prose, write_demo

# Not strftime's, whose names are those of the machine's language.
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@pytest.fixture(scope="module")
def demo() -> DemoCollection:
    return generate_demo()


@pytest.fixture(scope="module")
def large() -> DemoCollection:
    return generate_demo(n_docs=12_000, n_topics=500)


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> DemoFiles:
    return write_demo(tmp_path_factory.mktemp("demo") / "new" / "folder")


def tokens(text: str) -> set[str]:
    """Words, with the plural's s taken off on both sides."""
    return {word.removesuffix("s") for word in re.findall(r"[a-z]+", text.lower())}


def seconds(iso: str) -> float:
    return datetime.fromisoformat(iso).timestamp()


def relevant(demo: DemoCollection) -> dict[str, list[dict[str, str]]]:
    document = {d["id"]: d for d in demo.documents}
    found = defaultdict(list)
    for qid, docid, grade in demo.qrels:
        if grade > 0:
            found[qid].append(document[docid])
    return found


def test_same_seed_gives_the_same_bytes_everywhere(files):
    """The digests were taken with Python 3.11, numpy 2.4 and found the same with 3.12 and numpy 1.26
    and with 3.13 and numpy 2.5. Strings hash differently in every process: an order taken from a set would
    show here as well."""
    digests = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        for path in (files.documents, files.topics, files.topics_tsv, files.topic_times, files.qrels)
    }
    assert digests == {
        "docs.jsonl": "bb2cf41385d86777",
        "topics.jsonl": "a1e0555af4d917af",
        "topics.tsv": "54cfc40021f57faf",
        "topics.times.tsv": "8910950dab72db45",
        "qrels.txt": "f851e2244aa63ebe",
    }


def test_another_seed_gives_another_collection(demo):
    other = generate_demo(seed=1)
    assert len(other.documents) == len(demo.documents) == 3000
    assert not {d["contents"] for d in demo.documents} & {d["contents"] for d in other.documents}


def test_counts_ids_and_dates(demo):
    assert Counter(topic["kind"] for topic in demo.topics) == {"breaking": 20, "retrospective": 15, "standing": 15}
    assert len({topic["query"] for topic in demo.topics}) == 50
    assert {grade for _, _, grade in demo.qrels} == {0, 1, 2}
    ids, dates = ([d[name] for d in demo.documents] for name in ("id", "date"))
    assert (sorted(set(ids)), sorted(dates)) == (ids, dates)  # unique, in order of time
    judged = [(qid, docid) for qid, docid, _ in demo.qrels]
    assert len(set(judged)) == len(judged)
    assert {docid for _, docid in judged} <= set(ids)
    days = {date[:10] for date in dates}
    assert (min(days), max(days)) == ("2022-01-01", "2022-12-31")
    assert len(days) > 355
    assert all("2022-01-01" < topic["time"] < "2023" for topic in demo.topics)
    found = relevant(demo)
    assert min(len(found[topic["qid"]]) for topic in demo.topics) >= 6


def test_weekdays_in_the_text_are_those_of_the_date(demo):
    for d in demo.documents[::50]:
        for day in re.findall(r" on (\w+day)\b", d["contents"]):
            assert WEEKDAYS[datetime.fromisoformat(d["date"]).weekday()] == day


def test_nothing_at_or_after_the_query_time_is_relevant(demo):
    """And later reports of the same events are there, judged 0: whoever ranks the future loses by it."""
    time = {topic["qid"]: topic["time"] for topic in demo.topics}
    date = {d["id"]: d["date"] for d in demo.documents}
    later = Counter()
    for qid, docid, grade in demo.qrels:
        if date[docid] >= time[qid]:
            assert grade == 0
            later[qid] += 1
    assert len(later) == 50


def test_no_word_of_a_query_is_in_all_its_relevant_documents(demo):
    """Stronger: in every topic some relevant document has no word of the query; over all, a quarter."""
    found, shares = relevant(demo), []
    for topic in demo.topics:
        words = tokens(topic["query"])
        present = [words & tokens(d["contents"]) for d in found[topic["qid"]]]
        assert not set.intersection(*present)
        assert set() in present
        shares.append(sum(not p for p in present) / len(present))
    assert 0.25 < sum(shares) / len(shares) < 0.45


@pytest.mark.parametrize("story", [*prose.EVENTS, *prose.STANDING], ids=lambda story: story.subject[0])
def test_clauses_reach_the_query_words_only_through_slots(story: prose.Story):
    """Else the documents written to avoid the query would not."""
    words = tokens(story.query)
    fixed = [clause for phase in (*story.phases, *prose.ANY_EVENT, prose.ANY_STANDING) for clause in phase]
    fixed += [*prose.NICKNAMES, *prose.REMARKS, *story.subject[1:], *story.happening[1:]]
    assert [text for text in fixed if words & tokens(re.sub(r"\{\w+\}", "", text))] == []
    assert all(words & tokens(clause) for clause in story.other_sense)


def test_kinds_of_topic_differ_in_time(demo):
    """Breaking: the relevant are recent. Retrospective: a burst ten days ago or longer. Standing: spread."""
    found = relevant(demo)
    age = defaultdict(list)
    spread = defaultdict(list)
    for topic in demo.topics:
        ages = [(seconds(topic["time"]) - seconds(d["date"])) / 86400 for d in found[topic["qid"]]]
        age[topic["kind"]].append(median(ages))
        spread[topic["kind"]].append(max(ages) - min(ages))
        if topic["kind"] == "retrospective":
            assert min(ages) > 9.9
    assert max(age["breaking"]) < 30
    assert max(spread["breaking"] + spread["retrospective"]) < min(spread["standing"])
    assert median(spread["breaking"]) < 30 and median(spread["standing"]) > 140


def test_breaking_topics_have_an_older_double(demo):
    date = {d["id"]: d["date"] for d in demo.documents}
    for topic in demo.topics:
        if topic["kind"] == "breaking":
            first = min(date[i] for q, i, grade in demo.qrels if q == topic["qid"] and grade > 0)
            older = [i for q, i, grade in demo.qrels if q == topic["qid"] and grade == 0 and date[i] < first]
            assert len(older) >= 4


def test_vocabulary_of_an_event_drifts(demo):
    """Among the relevant of the bursts, the query's words are rarer in the later half than in the earlier."""
    found = relevant(demo)
    halves = ([], [])
    for topic in demo.topics:
        if topic["kind"] != "standing":
            words = tokens(topic["query"])
            documents = found[topic["qid"]]
            for i, d in enumerate(documents):
                halves[2 * i >= len(documents)].append(len(words & tokens(d["contents"])) / len(words))
    early, late = (sum(half) / len(half) for half in halves)
    assert late < early - 0.05


def test_central_reports_say_more_of_the_event_than_partial_ones(demo):
    """Grades mean something: the proper names of a topic's event fill more of a 2 than of a 1."""
    place = {
        topic["qid"]: re.search(r" at (\w+)", topic["description"])[1]
        for topic in demo.topics
        if topic["kind"] != "standing"
    }
    document = {d["id"]: d for d in demo.documents}
    share = defaultdict(list)
    for qid, docid, grade in demo.qrels:
        if qid in place and grade:
            text = document[docid]["contents"]
            share[grade].append(text.count(place[qid]) / len(text.split()))
    assert sum(share[2]) / len(share[2]) > 1.2 * sum(share[1]) / len(share[1])


def test_text_reads_as_text(demo):
    lengths = sorted(len(d["contents"].split()) for d in demo.documents)
    assert 110 <= sum(lengths) / len(lengths) <= 130
    assert lengths[150] >= 60 and lengths[-150] <= 225  # 5 % and 95 %
    for d in demo.documents:
        title, _, body = d["contents"].partition("\n\n")
        assert title == d["title"] and body
        assert "{" not in body and "  " not in body
        assert not re.search(r"\b[Aa] [aeiou]", d["contents"])
        assert all(re.match(r"[A-Z“0-9]", paragraph) for paragraph in body.split("\n\n"))


def test_vocabulary_has_thousands_of_words_and_grows(demo, large):
    def vocabulary(documents):
        return len({word for d in documents for word in re.findall(r"\w+", d["contents"].lower())})

    assert 5000 < vocabulary(demo.documents) < 9000
    assert vocabulary(large.documents) > 1.3 * vocabulary(demo.documents)


def test_word_lists_have_no_word_twice_and_fill_every_slot_of_the_background():
    for kind, words in prose.WORDS.items():
        assert len(set(words)) == len(words), kind
    slots = {*"pronmt", *prose.WORDS, "place", "person", "brand", "num", "few", "score", "weekday"}
    for clause in (*(c for section in prose.SECTIONS.values() for c in section), *prose.REMARKS):
        assert set(re.findall(r"\{(\w+)\}", clause)) <= slots, clause


def test_names_do_not_repeat_and_larger_worlds_contain_smaller_ones():
    for kind in ("place", "person", "org", "region", "brand"):
        every = prose.names(kind, 10**6)
        assert len(set(every)) == len(every) > 10_000
        assert every[:100] == prose.names(kind, 100)


@pytest.mark.parametrize(("n_docs", "n_topics"), [(20, 1), (1000, 50), (200, 10), (5000, 1), (12_000, 500)])
def test_other_sizes(n_docs, n_topics, large):
    demo = large if n_docs == 12_000 else generate_demo(n_docs=n_docs, n_topics=n_topics)
    assert (len(demo.documents), len(demo.topics)) == (n_docs, n_topics)
    assert len({d["id"] for d in demo.documents}) == n_docs
    assert all(len(documents) >= 6 for documents in relevant(demo).values())
    assert len(relevant(demo)) == n_topics


def test_longer_documents_on_request():
    demo = generate_demo(n_docs=400, n_topics=5, mean_words=300)
    words = [len(d["contents"].split()) for d in demo.documents]
    assert 250 < sum(words) / len(words) < 350


def test_files_say_what_the_collection_in_memory_says(files, demo):
    lines = files.documents.read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == demo.documents
    topics = read_topics(files.topics)
    assert [(t.qid, t.text) for t in topics] == [(t["qid"], t["query"]) for t in demo.topics]
    assert [t.time for t in topics] == [1000 * seconds(t["time"]) for t in demo.topics]
    by_table = read_topics(files.topics_tsv, times=files.topic_times)
    assert [(t.qid, t.text, t.time) for t in by_table] == [(t.qid, t.text, t.time) for t in topics]
    qrels = read_qrels(files.qrels)
    assert [(q, d, g) for q in qrels for d, g in qrels[q].items()] == demo.qrels
    names = "docs.jsonl qrels.txt topics.jsonl topics.times.tsv topics.tsv"
    assert sorted(path.name for path in files.documents.parent.iterdir()) == names.split()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_docs": 999}, "50 topics need at least 1000 documents, got n_docs=999"),
        ({"n_topics": 0}, "n_topics must be at least 1, got 0"),
        ({"seed": -1}, "seed must be 0 or more, got -1"),
        ({"mean_words": 10}, "mean_words must be at least 60, got 10"),
    ],
)
def test_impossible_requests(arguments, message, tmp_path):
    with pytest.raises(ParameterError, match=re.escape(message)):
        write_demo(tmp_path / "demo", **arguments)
    assert not (tmp_path / "demo").exists()
