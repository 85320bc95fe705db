"""``sdretrieval compare QRELS RUN RUN …``: is it better, on which topics, because of which documents."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

from sdretrieval.cli.evaluate import (
    add_inputs,
    add_measures,
    add_significance,
    check_overlap,
    comparison_record,
    comparison_table,
    plain,
    tell,
    with_baseline,
    write_table,
)
from sdretrieval.errors import ParameterError
from sdretrieval.evaluate import Evaluation, Evaluator, compare
from sdretrieval.evaluate.inputs import NamedRun, read_runs
from sdretrieval.evaluate.significance import differences
from sdretrieval.evaluate.tables import NOTHING, number, text_table

EXAMPLE = """\
examples:
  sdretrieval compare qrels/cacm.txt runs/ql.trec runs/sd.trec
  sdretrieval compare qrels/cacm.txt runs/ql.trec runs/sd.trec --topic 25
  sdretrieval compare qrels/cacm.txt runs/*.trec --baseline runs/ql.trec --measures AP P@5 --output jsonl

The first run is the baseline unless --baseline names another. `sdretrieval report` makes the page of it.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    add_inputs(parser)
    add_measures(parser)
    add_significance(parser)
    parser.add_argument("--output", "-o", choices=("table", "jsonl"), default="table", help="default: table")
    parser.add_argument("--places", "-p", type=int, default=4, metavar="N", help="decimals (default 4)")
    parser.add_argument(
        "--most",
        type=int,
        default=5,
        metavar="N",
        help="topics with the largest gains and losses (default 5)",
    )
    parser.add_argument("--topic", metavar="QID", help="show which documents of this topic moved")
    parser.set_defaults(per_topic=False)


def run(args: argparse.Namespace) -> int:
    from sdretrieval.trec import read_qrels

    qrels = read_qrels(args.qrels)
    specs, position = with_baseline(args.runs, args.baseline)
    if len(specs) < 2:
        raise ParameterError(
            "comparing takes two runs", remedy="Name another run, or use `sdretrieval evaluate`."
        )
    runs = read_runs(specs)
    evaluator = Evaluator(qrels, args.measures, complete=args.complete, rel=args.rel)
    evaluations = [evaluator.evaluate(named.run, named.name) for named in runs]
    check_overlap(evaluations, runs, args.qrels)
    tell(evaluations)
    baseline = evaluations[position or 0]
    others = [e for e in evaluations if e is not baseline]
    table = compare(others, baseline, tests=args.test, correction=args.correction, seed=args.seed)
    if args.topic is not None and args.topic not in baseline.topics:
        raise ParameterError(
            f"topic {args.topic!r} was not counted",
            remedy=f"Counted were {', '.join(baseline.topics[:10])}, …",
        )
    measure = baseline.measures[0]
    if args.output == "jsonl":
        for comparison in table:
            print(json.dumps(comparison_record(comparison), ensure_ascii=False))
        for other in others:
            for qid, difference in topic_differences(other, baseline, measure):
                record = {"run": other.name, "baseline": baseline.name, "query_id": qid, "measure": measure}
                print(json.dumps({**record, "difference": plain(difference)}, ensure_ascii=False))
        return 0
    write_table(evaluations, [], args)
    print()
    print(comparison_table(table, args.places, args.correction))
    for other in others:
        print()
        print(f"{other.name} against {baseline.name}: the largest differences in {measure}")
        print(extremes(other, baseline, measure, args.most, args.places))
    if args.topic is not None:
        first = runs[position or 0]
        for named in runs:
            if named is not first:
                print()
                print(f"topic {args.topic}: relevant documents and the first ten of each run")
                print(moved(named, first, args.topic, qrels[args.topic]))
    return 0


def topic_differences(run: Evaluation, baseline: Evaluation, measure: str) -> list[tuple[str, float]]:
    """(topic, difference), best first."""
    common = [qid for qid in run.topics if qid in baseline.per_topic[measure]]
    values = differences(
        [run.per_topic[measure][qid] for qid in common], [baseline.per_topic[measure][qid] for qid in common]
    )
    return sorted(zip(common, values.tolist(), strict=True), key=lambda pair: -pair[1])


def extremes(run: Evaluation, baseline: Evaluation, measure: str, most: int, places: int) -> str:
    ordered = topic_differences(run, baseline, measure)
    gains = [pair for pair in ordered if pair[1] > 0][:most]
    losses = [pair for pair in ordered if pair[1] < 0][-most:] if most else []
    rows = [
        [
            qid,
            number(difference, places, sign=True),
            number(baseline.per_topic[measure][qid], places),
            number(run.per_topic[measure][qid], places),
        ]
        for qid, difference in [*gains, *losses]
    ]
    return text_table(["topic", "difference", baseline.name, run.name], rows) if rows else "none"


def moved(run: NamedRun, baseline: NamedRun, qid: str, grades: dict[str, int], top: int = 10) -> str:
    """Ranks in both runs of the judged relevant documents and of the first ten."""
    ranks: list[dict[str, int]] = []
    shown: list[str] = []
    for named in (baseline, run):
        docids: Sequence[str] = named.run[qid].docids if qid in named.run else []
        ranks.append({docid: rank for rank, docid in enumerate(docids, 1)})
        shown += docids[:top]
    shown += [docid for docid, grade in grades.items() if grade > 0 and any(docid in r for r in ranks)]
    last = 10**9
    rows = []
    for docid in sorted(set(shown), key=lambda d: (ranks[1].get(d, last), ranks[0].get(d, last), d)):
        before, after = ranks[0].get(docid), ranks[1].get(docid)
        if before is not None and after is not None:
            move = f"{before - after:+d}" if before != after else "="
        else:
            move = "new" if before is None else "gone"
        rows.append(
            [
                docid,
                str(grades[docid]) if docid in grades else "?",
                NOTHING if before is None else str(before),
                NOTHING if after is None else str(after),
                move,
            ]
        )
    return text_table(["document", "grade", baseline.name, run.name, "move"], rows)
