"""ir_metadata in runs: written, read back by ours and by the reference reader; what is damaged is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sdretrieval.collection.records import Ranking, Run
from sdretrieval.collection.trec import read_metadata, read_run, write_run
from sdretrieval.collection.trec.metadata import END, START
from sdretrieval.core.errors import InputError
from sdretrieval.evaluate.inputs import read_runs
from sdretrieval.index.snapshot import Snapshot
from sdretrieval.ranking.manifest import ir_metadata, manifest
from sdretrieval.ranking.registry import make_ranker

RUN = Run({"51": Ranking(["a", "b"], [2.5, 1.0]), "#7": Ranking(["c"], [1.0])}, "mine")


def content() -> dict:
    snapshot = Snapshot.from_counts(np.eye(3, dtype=int), ["a", "b", "c"], name="abc")
    command = ["sdretrieval", "search", "--query", "it's: # é"]
    note = manifest(verb="search", ranker=make_ranker("rm3"), snapshot=snapshot, inputs={}, options={}, command=command)
    return ir_metadata(note, "mine")


plain = (
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
values = st.recursive(plain, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)


@settings(max_examples=50)
@given(st.dictionaries(st.text(), values))
def test_what_is_written_is_read_back(tmp_path_factory, told):
    path = tmp_path_factory.mktemp("metadata") / "run.txt"
    write_run(path, RUN, metadata=told)
    assert read_metadata(path) == told
    assert read_run(path) == RUN


def test_the_reference_reader_reads_it(tmp_path, recwarn):
    metadata = pytest.importorskip("repro_eval.metadata", reason="the reference reader, repro_eval, is not installed")
    write_run(tmp_path / "run.txt", RUN, metadata=content())
    assert (
        metadata.MetadataHandler.read_metadata(tmp_path / "run.txt") == content() == read_metadata(tmp_path / "run.txt")
    )
    assert set(metadata.MetadataAnalyzer(tmp_path / "run.txt").reference_metadata) >= {
        *("platform", "research goal", "implementation", "method", "actor", "data")
    }
    write_run(tmp_path / "plain.txt", RUN)
    handler = metadata.MetadataHandler(tmp_path / "plain.txt")
    handler.set_metadata(content())
    handler.write_metadata(str(tmp_path / "theirs.txt"))
    assert read_metadata(tmp_path / "theirs.txt") == content()
    assert read_run(tmp_path / "theirs.txt") == RUN


def test_it_stands_in_for_a_manifest(tmp_path):
    write_run(tmp_path / "run.txt", RUN, metadata=content())
    (named,) = read_runs([str(tmp_path / "run.txt")], beside=True)
    assert named.manifest["method"]["retrieval"][0]["fb_docs"] == 10
    write_run(tmp_path / "run.txt", RUN)
    assert read_runs([str(tmp_path / "run.txt")], beside=True)[0].manifest is None


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("# a: 1", "no end"),
        (f"a: 1\n{END}", "no end"),
        (f"# - 1\n{END}", "no mapping"),
        (f"# a: [\n{END}", "cannot be read"),
        (f"# a: &x [1]\n# b: *x\n{END}", "alias"),
        (f"# a: {'[' * 2000}{']' * 2000}\n{END}", "cannot be read"),
        (f"# a: !!python/object/apply:os.system [ls]\n{END}", "cannot be read"),
    ],
)
def test_damaged_metadata(tmp_path, lines, said):
    path = tmp_path / "run.txt"
    path.write_text(f"{START}\n{lines}\n51 Q0 a 1 2.5 mine\n")
    with pytest.raises(InputError, match=said):
        read_metadata(path)


def test_dates_and_other_values_of_yaml(tmp_path):
    (tmp_path / "run.txt").write_text(f"{START}\n# a: 2022-01-01\n#\n# 1: [.nan, yes]\n{END}\n51 Q0 a 1 2.5 mine\n")
    told = read_metadata(tmp_path / "run.txt")
    assert told["a"] == "2022-01-01"
    assert str(told["1"]) == "[nan, True]"
