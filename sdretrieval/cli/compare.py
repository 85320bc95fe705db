"""``sdretrieval compare QRELS RUN RUN …``: is it better, on which topics, because of which documents."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from sdretrieval.cli.evaluate import (
    EvaluatedRuns,
    add_evaluation_arguments,
    add_output_arguments,
    compare_runs,
    comparison_record,
    comparison_tables,
    evaluate_runs,
    means_table,
    output_of,
    settle_output,
    settle_words,
    write_records,
)
from sdretrieval.cli.value_types import natural
from sdretrieval.collection.trec.metadata import START
from sdretrieval.core.errors import ParameterError, few
from sdretrieval.core.files import numbered_lines
from sdretrieval.core.tables import NOTHING, json_number, number, text_table
from sdretrieval.evaluate.inputs import NamedRun, read_runs, with_baseline
from sdretrieval.evaluate.measures import Evaluation
from sdretrieval.evaluate.significance import Comparison, differences
from sdretrieval.evaluate.systems import similarity

EXAMPLE = """\
examples:
  sdretrieval compare qrels/cacm.txt runs/ql.trec runs/sd.trec
  sdretrieval compare runs/ql.trec runs/sd.trec
  sdretrieval compare qrels/cacm.txt runs/ql.trec runs/sd.trec --topic 25
  sdretrieval compare qrels/cacm.txt runs/*.trec --baseline runs/ql.trec --measures AP P@5 --output-format jsonl

The first run is the baseline unless --baseline names another. Without judgments: rank-biased overlap, common
documents at depths, Kendall's τ. `sdretrieval report` makes the page of it.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    add_evaluation_arguments(parser)
    add_output_arguments(parser, "table", "jsonl")
    add = parser.add_argument
    add("--most", type=natural, default=5, metavar="N", help="topics with the largest gains and losses (default 5)")
    add("--topic", metavar="QID", help="show which documents of this topic moved")


def run(args: argparse.Namespace) -> int:
    settle_output(args)
    if is_run(args.qrels):
        with output_of(args):
            write_similarities([args.qrels, *args.runs], args)
        return 0
    settle_words(args)
    found = evaluate_runs(args)
    if len(found.runs) < 2:
        raise ParameterError("comparing takes two runs", remedy="Name another run, or use `sdretrieval evaluate`.")
    counted = found.evaluations[found.baseline].topics
    if args.topic is not None and args.topic not in counted:
        raise ParameterError(f"topic {args.topic!r} was not counted", remedy=f"Counted were {few(counted)}.")
    comparisons = compare_runs(args, found)
    with output_of(args):
        if args.output_format == "jsonl":
            write_json(found, comparisons)
        else:
            print_tables(args, found, comparisons)
    return 0


def is_run(path: str) -> bool:
    """Whether the first file is no judgments but a run, which has six columns: NAME=PATH is one."""
    named = "=" in path and not Path(path).exists()
    if not named and not Path(path).exists():
        return False  # a name of ir_datasets, or a mistake
    first = "" if named else next((line for _, line in numbered_lines(path) if line.strip()), "")
    return named or first.strip() == START or len(first.split()) == 6


def write_similarities(specs: list[str], args: argparse.Namespace) -> None:
    """Each run against the first, or against --baseline."""
    specs, place = with_baseline(specs, args.baseline[0] if args.baseline else None)
    runs = read_runs(specs)
    base = runs.pop(place or 0)
    found = {named.name: similarity(base.run, named.run) for named in runs}
    if not any(alike["topics"] for alike in found.values()):
        raise ParameterError("the runs have no topic in common", remedy="Check that they rank the same topics.")
    if args.output_format == "jsonl":
        write_records({"run": name, "baseline": base.name, **alike} for name, alike in found.items())
        return
    rows = [
        [name, str(alike.pop("topics")), *(number(x, args.places) for x in alike.values())]
        for name, alike in found.items()
    ]
    names = [name for name in next(iter(found.values())) if name != "topics"]
    print(f"like {base.name}, means over common topics; no judgments were given")
    print(text_table(["run", "topics", *names], rows))


def write_json(found: EvaluatedRuns, comparisons: list[Comparison]) -> None:
    """The comparisons, then the difference on each topic by the first measure."""
    write_records(map(comparison_record, comparisons))
    baseline = found.evaluations[found.baseline]
    for other in found.others:
        told = {"run": other.name, "baseline": baseline.name}
        measure = baseline.measures[0]
        write_records(
            {**told, "query_id": qid, "measure": measure, "difference": json_number(difference)}
            for qid, difference in topic_differences(other, baseline, measure)
        )


def print_tables(args: argparse.Namespace, found: EvaluatedRuns, comparisons: list[Comparison]) -> None:
    baseline = found.evaluations[found.baseline]
    measure = baseline.measures[0]
    print(means_table(found.evaluations, args.places))
    print("\n" + comparison_tables(comparisons, args.places, args.correction))
    for other in found.others:
        print(f"\n{other.name} against {baseline.name}: the largest differences in {measure}")
        print(extremes_table(other, baseline, measure, args.most, args.places))
    if args.topic is not None:
        for i, named in enumerate(found.runs):
            if i != found.baseline:
                print(f"\ntopic {args.topic}: relevant documents and the first ten of each run")
                print(moves_table(named, found.runs[found.baseline], args.topic, found.qrels[args.topic]))


def topic_differences(run: Evaluation, baseline: Evaluation, measure: str) -> list[tuple[str, float]]:
    """(topic, difference), best first."""
    ours, theirs = run.per_topic[measure], baseline.per_topic[measure]
    common = [qid for qid in run.topics if qid in theirs]
    values = differences([ours[qid] for qid in common], [theirs[qid] for qid in common])
    return sorted(zip(common, values.tolist(), strict=True), key=lambda pair: -pair[1])


def extremes_table(run: Evaluation, baseline: Evaluation, measure: str, most: int, places: int) -> str:
    ordered = topic_differences(run, baseline, measure)
    gains = [pair for pair in ordered if pair[1] > 0][:most]
    losses = [pair for pair in ordered if pair[1] < 0][-most:] if most else []
    rows = [
        [qid, number(difference, places, sign=True)]
        + [number(one.per_topic[measure][qid], places) for one in (baseline, run)]
        for qid, difference in [*gains, *losses]
    ]
    return text_table(["topic", "difference", baseline.name, run.name], rows) if rows else "none"


def moves_table(run: NamedRun, baseline: NamedRun, qid: str, grades: Mapping[str, int], top: int = 10) -> str:
    """Ranks in both runs of the judged relevant documents and of the first ten."""
    ranked = [named.run[qid].docids if qid in named.run else [] for named in (baseline, run)]
    first, second = ({docid: rank for rank, docid in enumerate(docids, 1)} for docids in ranked)
    shown = {docid for docids in ranked for docid in docids[:top]}
    shown |= {docid for docid, grade in grades.items() if grade > 0 and (docid in first or docid in second)}
    last = 10**9
    rows = []
    for docid in sorted(shown, key=lambda d: (second.get(d, last), first.get(d, last), d)):
        before, after = first.get(docid), second.get(docid)
        if before is not None and after is not None:
            move = f"{before - after:+d}" if before != after else "="
        else:
            move = "new" if before is None else "gone"
        ranks = [NOTHING if rank is None else str(rank) for rank in (before, after)]
        rows.append([docid, str(grades.get(docid, "?")), *ranks, move])
    return text_table(["document", "grade", baseline.name, run.name, "move"], rows)
