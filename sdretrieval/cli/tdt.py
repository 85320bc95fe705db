"""``sdretrieval tdt QRELS DECISIONS|RUN …``: what tracking errors cost."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sdretrieval.cli.evaluate import add_output_arguments, output_of, settle_output, with_baseline
from sdretrieval.cli.value_types import positive
from sdretrieval.core.errors import InputError, few
from sdretrieval.core.tables import json_number

if TYPE_CHECKING:
    from sdretrieval.evaluate.significance import Comparison
    from sdretrieval.learn.tracking.tdt import TdtEvaluation

EXAMPLE = """\
examples:
  decisions of `sdretrieval track --emit all`; the seed documents are no trials:
    sdretrieval tdt qrels.txt decisions.jsonl --seeds seeds.txt

  TREC runs that list only the best documents of a stream of 21,578, compared, with the DET curves drawn:
    sdretrieval tdt qrels.txt RM=runs/rm.trec SD=runs/sd.trec --documents 21578 --baseline RM --det det.png

  every story, for a program:
    sdretrieval tdt qrels.txt decisions.jsonl -q --output-format jsonl

Costs are normalised: 1 is what saying no (or yes) to everything costs. MinCost is at the best common threshold; actual
cost is that of the decisions in the file. A document without a judgment is taken for off topic (--judged-only: left
out).
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    parser.add_argument("qrels", metavar="QRELS", help="judgments, TREC form: story 0 docid relevance")
    parser.add_argument(
        "files", metavar="FILE", nargs="+", help="decisions (JSON lines) or a TREC run; NAME=FILE to choose its name"
    )
    group = parser.add_argument_group("trials")
    count = group.add_mutually_exclusive_group()
    count.add_argument(
        "--documents",
        type=positive,
        metavar="N",
        help="documents in the stream: those not listed are below every threshold, relevant ones among them missed",
    )
    count.add_argument("--index", metavar="DIR", help="take the number of documents from this index")
    count.add_argument("--listed", action="store_true", help="only documents listed in the file are trials")
    group.add_argument("--seeds", metavar="FILE", help="documents that are no trials: story 0 docid 1")
    group.add_argument("--judged-only", action="store_true", help="leave out listed documents without a judgment")
    group.add_argument("--rel", "-l", type=int, default=1, metavar="N", help="least grade that is on topic (default 1)")
    group = parser.add_argument_group("costs")
    group.add_argument("--p-target", type=float, default=0.02, metavar="P", help="default: %(default)s")
    group.add_argument("--c-miss", type=float, default=1.0, metavar="C", help="default: %(default)s")
    group.add_argument("--c-fa", type=float, default=0.1, metavar="C", help="default: %(default)s")
    group.add_argument(
        "--weighting", choices=("topic", "story"), default="topic", help="mean over stories, or pooled (default: topic)"
    )
    group = parser.add_argument_group("output")
    group.add_argument("--baseline", metavar="FILE", help="compare every other file with this one (a path or name)")
    group.add_argument("-q", "--per-topic", action="store_true", help="also print every story")
    add_output_arguments(group, "table", "jsonl", "csv")
    group.add_argument("--det", metavar="FILE", help="draw the DET curves: .png, .svg or .pdf")
    group.add_argument("--det-points", metavar="FILE", help="write the points of the curves as CSV")


def run(args: argparse.Namespace) -> int:
    from sdretrieval.core.plotting import check_figure_name
    from sdretrieval.evaluate.inputs import split_names
    from sdretrieval.learn.tracking.tdt import Costs, compare_trackers

    settle_output(args)
    costs = Costs(args.p_target, args.c_miss, args.c_fa)
    if args.det is not None:
        check_figure_name(args.det)
    specs, baseline = with_baseline(args.files, args.baseline)
    documents = _documents(args)
    evaluations = [_evaluate(args, name, path, costs, documents) for name, path in split_names(specs)]
    comparisons = []
    if baseline is not None:
        first = evaluations[baseline]
        comparisons = [compare_trackers(one, first) for one in evaluations if one is not first]
    with output_of(args):
        _write(evaluations, comparisons, args)
    if args.det is not None:
        from sdretrieval.learn.tracking.det import write_det

        write_det(args.det, {one.name: one for one in evaluations})
    if args.det_points is not None:
        _write_points(args.det_points, evaluations)
    return 0


def _write(evaluations: Sequence[TdtEvaluation], comparisons: Sequence[Comparison], args: argparse.Namespace) -> None:
    if args.output_format == "table":
        _print_table(evaluations, comparisons, args)
    elif args.output_format == "jsonl":
        for record in (*_records(evaluations, args.per_topic), *map(_comparison_record, comparisons)):
            print(json.dumps(record, ensure_ascii=False))
    else:
        columns = ["system", "topic", "cost", "p_miss", "p_fa", "own_min_cost"]
        found = _records(evaluations, args.per_topic)
        # what the line of all stories does not have is its MinCost
        _write_csv(sys.stdout, columns, ([one.get(name, one.get("min_cost")) for name in columns] for one in found))


def _documents(args: argparse.Namespace) -> int | None:
    if args.index is not None:
        from sdretrieval.index.snapshot import open_snapshot

        return open_snapshot(args.index).n_docs
    return args.documents


def _evaluate(args: argparse.Namespace, name: str, path: Path, costs: Any, documents: int | None) -> TdtEvaluation:
    from sdretrieval.collection.trec import read_qrels
    from sdretrieval.learn.tracking.decisions import read_decisions
    from sdretrieval.learn.tracking.tdt import evaluate_trials, trials_of

    qrels = read_qrels(args.qrels)
    seeds = {}
    if args.seeds is not None:
        given = read_qrels(args.seeds)
        seeds = {story: given.relevant(story) for story in given}
    decisions = read_decisions(path)
    if documents is None and not args.listed and (decisions.from_run or decisions.only_yes):
        what = "a run lists some documents only" if decisions.from_run else "it lists on-topic decisions only"
        raise InputError(
            f"{what}: how many documents were not listed?",
            file=path,
            remedy="Give --documents N or --index DIR, or --listed if every document is in it.",
        )
    trials, unjudged = trials_of(
        decisions, qrels, documents=documents, seeds=seeds, judged_only=args.judged_only, level=args.rel
    )
    if not trials or all(trial.n_targets == 0 for trial in trials.values()):
        raise InputError(
            f"no story of it has an on-topic document in {args.qrels}",
            file=path,
            remedy="Check that the files belong together and write topics and docids alike.",
        )
    found = evaluate_trials(trials, costs=costs, weighting=args.weighting, name=name)
    for stories, why in ((unjudged, "without judgments"), (found.skipped, "without an on-topic document")):
        if stories:
            print(f"{name}: {len(stories)} stories {why} left out ({few(stories)})", file=sys.stderr)
    return found


def _print_table(evaluations: Sequence[TdtEvaluation], comparisons: Sequence[Comparison], args: Any) -> None:
    from sdretrieval.core.tables import number, probability, text_table

    def numbers(*values: float) -> list[str]:
        return [number(value, args.places) for value in values]

    rows = []
    for one in evaluations:
        rates = numbers(one.min_cost, one.p_miss, one.p_fa)
        rows.append([one.name, str(len(one.per_story)), *rates, f"{one.threshold:.6g}", *numbers(one.actual_cost)])
    print(text_table(["system", "topics", "MinCost", "P_miss", "P_fa", "threshold", "actual cost"], rows))
    if args.per_topic:
        rows = []
        for name, story, cost in ((one.name, *pair) for one in evaluations for pair in one.per_story.items()):
            costs = numbers(cost.cost, cost.p_miss, cost.p_fa, cost.own_min_cost)
            rows.append([name, story, str(cost.targets), str(cost.others), *costs])
        header = ["system", "topic", "on topic", "off topic", "cost", "P_miss", "P_fa", "own MinCost"]
        print("\n" + text_table(header, rows, left=2))
    if comparisons:
        rows = [
            [c.run, number(c.difference, args.places, sign=True), f"{c.losses}/{c.ties}/{c.wins}"]
            + [probability(c.tests[test].p_value) for test in ("t", "sign")]
            for c in comparisons
        ]
        print(f"\ncost against {comparisons[0].baseline}, over {len(comparisons[0].topics)} topics")
        print(text_table(["system", "difference", "better/equal/worse", "p (t)", "p (sign)"], rows))


def _records(evaluations: Sequence[TdtEvaluation], per_story: bool) -> Iterator[dict[str, Any]]:
    names = ("min_cost", "threshold", "p_miss", "p_fa", "actual_cost", "actual_p_miss", "actual_p_fa")
    for one in evaluations:
        about = {"system": one.name, "topic": "all", "topics": len(one.per_story), "weighting": one.weighting}
        yield about | {name: json_number(getattr(one, name)) for name in names}
        for story, cost in one.per_story.items() if per_story else ():
            yield {
                "system": one.name,
                "topic": story,
                **{name: json_number(value) for name, value in vars(cost).items()},
            }


def _comparison_record(c: Comparison) -> dict[str, Any]:
    return {
        "system": c.run,
        "baseline": c.baseline,
        "topics": len(c.topics),
        "difference": c.difference,
        "better": c.losses,
        "equal": c.ties,
        "worse": c.wins,
        **{f"p_{test}": json_number(result.p_value) for test, result in c.tests.items()},
    }


def _write_points(path: str, evaluations: Sequence[TdtEvaluation]) -> None:
    from sdretrieval.core.files import atomic_writer

    def points() -> Iterator[list[Any]]:
        for one in evaluations:
            for point in zip(one.curve.thresholds, one.curve.p_fa, one.curve.p_miss, strict=True):
                yield [one.name, *map(float, point)]

    with atomic_writer(path) as out:
        _write_csv(out, ["system", "threshold", "p_fa", "p_miss"], points())


def _write_csv(out: Any, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
