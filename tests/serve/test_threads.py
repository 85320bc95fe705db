"""Many threads at once: Java's objects do not get mixed up."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from served_collection import LATER, PAST

from sdretrieval import Index


def test_texts_and_words_of_many_threads(path):
    index, words = Index(path), ["storms", "flooding", "ferries", "telescopes", "bees", "orchards"]
    stems = {word: index.snapshot.analyze(word) for word in words}
    texts = {document["id"]: document["contents"] for document in PAST + LATER}

    def look(number: int) -> bool:
        docid, word = sorted(texts)[number % len(texts)], words[number % len(words)]
        return index.doc(docid).text == texts[docid] and index.snapshot.analyze(word) == stems[word]

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(look, range(1500)))


def test_answers_of_many_threads(index):
    queries = ["storm flood", "bees orchards", "night trains", "comet telescope", "city people"]

    def told(query: str) -> list:
        return [(hit.docid, hit.score, hit.title, hit.snippet) for hit in index.search(query, "sd3", k=20)]

    alone = {query: told(query) for query in queries}
    with ThreadPoolExecutor(8) as pool:
        for query, found in zip(queries * 20, pool.map(told, queries * 20), strict=True):
            assert found == alone[query]
