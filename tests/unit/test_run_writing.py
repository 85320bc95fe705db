"""A run written topic by topic, and what is said about it."""

from __future__ import annotations

import os
from argparse import Namespace
from concurrent.futures import ThreadPoolExecutor

import pytest

from sdretrieval.cli.search import write, writing
from sdretrieval.collection.records import Ranking, Run
from sdretrieval.ranking.retrieval import Report


def test_a_pipe_gets_the_run_when_all_of_it_is_there(tmp_path):
    """What has gone through it cannot be taken back."""
    os.mkfifo(tmp_path / "pipe")
    args = Namespace(output=str(tmp_path / "pipe"), tag=None, topics="topics.tsv")
    with pytest.raises(KeyboardInterrupt), writing(args, "mine", Report()) as written:
        written.add("1", Ranking(["a"], [1.0]))  # nobody reads: writing would wait for ever
        raise KeyboardInterrupt
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit((tmp_path / "pipe").read_text)
        with writing(args, "mine", Report()) as written:
            written.add("1", Ranking(["a"], [1.0]))
            written.add("2", Ranking([], []))
        assert read.result(300) == "1 Q0 a 1 1.0 mine\n"
    assert (written.topics, written.documents, written.without) == (2, 1, ["2"])


@pytest.mark.parametrize(
    ("verb", "told"), [("rerank", "keep their order"), ("spark rerank", "keep their order"), ("search", "no documents")]
)
def test_what_is_said_of_topics_without_a_known_word(capsys, verb, told):
    flags = dict.fromkeys(("tag", "topics", "topic_times", "expansion", "feedback_qrels"))
    found, report = Run({"1": Ranking(["d"], [1.0])}, "sd"), Report(empty_topics=["1"])
    write(Namespace(output="/dev/null", ir_metadata=False, **flags), verb, found, None, None, report, 0.0, {})
    assert told in capsys.readouterr().err
