"""Rank order against trec_eval itself, through pytrec_eval, which is trec_eval's code.

trec_eval does not print its ranking. One relevant document per topic makes it tell: with the same list under
as many topics as it has documents, the reciprocal rank of topic i is one over the rank of document i.
"""

from __future__ import annotations

import gzip

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from sdretrieval.collection.records import Ranking, Run, rank_order
from sdretrieval.collection.trec import read_run, write_run


def trec_eval_order(scores: dict[str, float]) -> list[str]:
    qrels = {str(i): {docid: 1} for i, docid in enumerate(scores)}
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, {"recip_rank"})
    found = evaluator.evaluate(dict.fromkeys(qrels, scores))
    by_rank = {round(1 / found[str(i)]["recip_rank"]): docid for i, docid in enumerate(scores)}
    return [by_rank[rank] for rank in range(1, len(scores) + 1)]


def our_order(scores: dict[str, float]) -> list[str]:
    docids = list(scores)
    return [docids[i] for i in rank_order(docids, list(scores.values()))]


def test_the_oracle_can_tell_orders_apart():
    """Guards the trick above: a list without ties has one right order."""
    assert trec_eval_order({"a": 1.0, "b": 3.0, "c": 2.0}) == ["b", "c", "a"]


@pytest.mark.parametrize(
    "scores",
    [
        {"a": 1.0, "b": 1.0, "B": 1.0, "9": 1.0, "10": 1.0, "aa": 1.0},
        {"z": 0.0, "é": 0.0, "\uffee": 0.0, "\U0001f600": 0.0, "\x7f": 0.0},
        {"a": 1.0 + 1e-9, "b": 1.0},
        {"a": 1.0 + 1e-7, "b": 1.0},
        {"a": 2.0**24 + 1, "b": 2.0**24},
        {"a": np.inf, "b": 1e300, "c": 1e39, "d": -1e39, "e": -np.inf},
        {"a": 1e-60, "b": 0.0, "c": -0.0},
    ],
    ids=["text", "utf8", "float64", "float32", "integers", "overflow", "underflow"],
)
def test_chosen_cases(scores):
    assert our_order(scores) == trec_eval_order(scores)


_near_ties = st.one_of(
    st.sampled_from([0.0, 1.0, -1.0, 1.0 + 2**-24, 1.0 + 2**-23, 1.0 + 3 * 2**-25, 1 - 2**-25]),
    st.floats(allow_nan=False, width=64),
    st.floats(allow_nan=False, width=32),
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.text("aAb09é漢\U0001f600-", min_size=1, max_size=4), _near_ties, min_size=1))
def test_any_list(scores):
    """Ties of three kinds: equal doubles, doubles equal as floats, and neighbours that are just not equal."""
    assert our_order(scores) == trec_eval_order(scores)


@pytest.mark.parametrize("name", ["run.trec", "run.trec.gz"])
def test_the_rank_column_of_a_written_run_is_trec_evals(tmp_path, name):
    """Scores pass through text here, as they do on the way to the trec_eval program."""
    rng = np.random.default_rng(3)
    docids = [f"d{i}" for i in rng.permutation(300)]
    scores = rng.choice(rng.normal(size=40), 300) * (1 + rng.choice([0, 1e-9], 300))
    write_run(tmp_path / name, Run({"7": Ranking(docids, scores)}, "t"))
    data = (tmp_path / name).read_bytes()
    text = (gzip.decompress(data) if name.endswith("gz") else data).decode()
    rows = [line.split() for line in text.splitlines()]
    written = [row[2] for row in sorted(rows, key=lambda row: int(row[3]))]
    assert written == trec_eval_order({row[2]: float(row[4]) for row in rows})
    assert written == read_run(tmp_path / name)["7"].docids
