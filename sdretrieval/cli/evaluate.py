"""``sdretrieval evaluate QRELS RUN …``: measures of runs as trec_eval computes them."""

from __future__ import annotations

import argparse
import csv
import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sdretrieval.errors import InputError, ParameterError
from sdretrieval.evaluate import (
    CORRECTIONS,
    DEFAULT_MEASURES,
    PERIODS,
    TESTS,
    Comparison,
    Evaluation,
    Evaluator,
    TimeSlice,
    compare,
    evaluate_by_query_time,
    evaluate_by_relevant_time,
    read_document_times,
)
from sdretrieval.evaluate.curves import CURVE_MEASURES
from sdretrieval.evaluate.inputs import NamedRun, read_runs, split_names
from sdretrieval.evaluate.tables import number, probability, text_table

SUMMARY = "all"  # what trec_eval and ir_measures call the mean over topics

EXAMPLE = """\
examples:
  sdretrieval evaluate qrels/cacm.txt runs/ql.trec runs/sd.trec --measures AP P@5 nDCG@10
  sdretrieval evaluate qrels/cacm.txt runs/ql.trec -q --output jsonl
  sdretrieval evaluate qrels/cacm.txt runs/ql.trec SD=runs/sd.trec --baseline runs/ql.trec --test t wilcoxon
  sdretrieval evaluate qrels/mb.txt runs/ql.trec --by-time week --topic-times topics.times.tsv

Measures are written as ir_measures writes them (AP, P@5, nDCG@10, RR, R@1000, AP(rel=2), IPrec@0.1);
trec_eval's names (map, P_5, ndcg_cut_10) are understood. Topics are counted as trec_eval counts them, and
stderr says which were left out.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    add_inputs(parser)
    add_measures(parser)
    parser.add_argument("-q", "--per-topic", action="store_true", help="also print every topic")
    parser.add_argument(
        "--output", "-o", choices=("table", "jsonl", "csv", "latex"), default="table", help="default: table"
    )
    parser.add_argument(
        "--places", "-p", type=int, default=4, metavar="N", help="decimals in tables (default 4; -1: all)"
    )
    parser.add_argument(
        "--recall-precision", action="store_true", help="add interpolated precision at the 11 recall levels"
    )
    add_significance(parser)
    group = parser.add_argument_group("by time")
    group.add_argument("--by-time", choices=tuple(PERIODS), help="the measures by calendar period (UTC)")
    group.add_argument(
        "--time-of",
        choices=("query", "relevant"),
        help="period of the query, or of the relevant documents: those of other periods are then left out of "
        "judgments and runs (default: query with --topic-times, else relevant)",
    )
    add_times(group)


def add_inputs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("qrels", metavar="QRELS", help="judgments, TREC form: qid 0 docid relevance")
    parser.add_argument("runs", metavar="RUN", nargs="+", help="TREC run, or NAME=RUN to choose its name")


def add_measures(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--measures", "-m", nargs="+", default=list(DEFAULT_MEASURES), metavar="M",
        help=f"default: {' '.join(DEFAULT_MEASURES)}",
    )  # fmt: skip
    parser.add_argument(
        "--complete",
        "-c",
        action="store_true",
        help="judged topics without results count as zero (trec_eval -c)",
    )
    parser.add_argument(
        "--rel",
        "-l",
        type=int,
        metavar="N",
        help="least grade that counts as relevant (trec_eval -l; default 1)",
    )


def add_significance(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("significance")
    group.add_argument(
        "--baseline", metavar="RUN", help="compare every other run with this one (a path or name)"
    )
    group.add_argument(
        "--test", nargs="+", choices=tuple(TESTS), default=list(TESTS), help="default: all four"
    )
    group.add_argument(
        "--correction", choices=CORRECTIONS, default="holm", help="over the runs compared (default: holm)"
    )
    group.add_argument("--seed", type=int, default=0, help="of the randomisation test (default 0)")


def add_times(group: Any) -> None:
    group.add_argument("--topic-times", metavar="FILE", help="query times: qid, tab, time")
    group.add_argument("--doc-times", metavar="FILE", help="document times: docid, tab, time")
    group.add_argument("--index", metavar="PATH", help="index whose document times are used")


def run(args: argparse.Namespace) -> int:
    from sdretrieval.trec import read_qrels

    if args.output == "latex" and (args.per_topic or args.by_time):
        raise ParameterError("--output latex has neither topics nor periods", remedy="Use --output csv.")
    if args.by_time and (args.per_topic or args.baseline):
        raise ParameterError("--by-time prints means only", remedy="Drop --per-topic and --baseline.")
    measures = [*args.measures, *(CURVE_MEASURES if args.recall_precision else ())]
    qrels = read_qrels(args.qrels)
    evaluator = Evaluator(qrels, measures, complete=args.complete, rel=args.rel)
    specs, baseline = with_baseline(args.runs, args.baseline)
    runs = read_runs(specs)
    evaluations = [evaluator.evaluate(named.run, named.name) for named in runs]
    check_overlap(evaluations, runs, args.qrels)
    tell(evaluations)
    comparisons: list[Comparison] = []
    if baseline is not None:
        first = evaluations[baseline]
        others = [e for e in evaluations if e is not first]
        comparisons = compare(others, first, tests=args.test, correction=args.correction, seed=args.seed)
    if args.by_time:
        write_slices(time_slices(args, runs, qrels, measures), args)
    elif args.output == "table":
        write_table(evaluations, comparisons, args)
    elif args.output == "jsonl":
        for record in records(evaluations, comparisons, args.per_topic):
            print(json.dumps(record, ensure_ascii=False))
    elif args.output == "csv":
        write_csv(evaluations, args.per_topic)
    else:
        from sdretrieval.report.latex import Block, latex_table

        print(latex_table([Block(Path(args.qrels).stem, evaluations, comparisons)]), end="")
    return 0


def with_baseline(specs: Sequence[str], baseline: str | None) -> tuple[list[str], int | None]:
    """The runs, the baseline among them, and where it stands; it may be given by name or by path."""
    specs = list(specs)
    if baseline is None:
        return specs, None
    named = split_names(specs)
    for i, (name, path) in enumerate(named):
        if baseline in (name, str(path), specs[i]):
            return specs, i
    if "=" not in baseline and not Path(baseline).exists():
        raise ParameterError(
            f"baseline {baseline!r} is neither a file nor one of the runs ({', '.join(n for n, _ in named)})"
        )
    return [baseline, *specs], 0


def check_overlap(evaluations: Sequence[Evaluation], runs: Sequence[NamedRun], qrels: str) -> None:
    for evaluation, named in zip(evaluations, runs, strict=True):
        if not evaluation.topics or set(evaluation.topics) <= set(evaluation.missing_topics):
            found = ", ".join(evaluation.unjudged_topics[:3]) or "none"
            judged = ", ".join(evaluation.missing_topics[:3]) or "none"
            raise InputError(
                f"no topic of the run (first: {found}) is judged in {qrels} (first: {judged})",
                file=named.path,
                remedy="Check that run and qrels belong together and write topic ids alike.",
            )


def tell(evaluations: Sequence[Evaluation]) -> None:
    """Which topics were not counted, or counted as zero, on stderr."""
    for evaluation in evaluations:
        for note in evaluation.notes():
            print(f"{evaluation.name}: {note}", file=sys.stderr)
    if len({evaluation.topics for evaluation in evaluations}) > 1:
        print("the runs' means are over different topics; --complete makes them comparable", file=sys.stderr)


def write_table(evaluations: Sequence[Evaluation], comparisons: Sequence[Comparison], args: Any) -> None:
    measures = evaluations[0].measures
    if args.per_topic:
        rows = [
            [e.name, qid, *(number(e.per_topic[m][qid], args.places) for m in measures)]
            for e in evaluations
            for qid in e.topics
        ]
        rows += [[e.name, SUMMARY, *(number(e.mean[m], args.places) for m in measures)] for e in evaluations]
        print(text_table(["run", "topic", *measures], rows, left=2))
    else:
        rows = [
            [e.name, str(len(e.topics)), *(number(e.mean[m], args.places) for m in measures)]
            for e in evaluations
        ]
        print(text_table(["run", "topics", *measures], rows))
    if comparisons:
        print()
        print(comparison_table(comparisons, args.places, args.correction))


def comparison_table(comparisons: Sequence[Comparison], places: int, correction: str) -> str:
    tests = list(comparisons[0].tests)
    header = ["run", "measure", "mean", "difference", "%", "95% interval", "win/tie/loss", "d", "P(sup)"]
    rows = []
    for c in comparisons:
        low, high = (number(x, places, sign=True) for x in c.confidence)
        rows.append(
            [
                c.run, c.measure, number(c.mean, places), number(c.difference, places, sign=True),
                number(100 * c.relative, 1, sign=True), f"{low} .. {high}", f"{c.wins}/{c.ties}/{c.losses}",
                number(c.cohens_d, 2, sign=True), number(c.superiority, 2),
                *(probability(c.corrected[t]) + ("*" if c.significant(t) else " ") for t in tests),
            ]
        )  # fmt: skip
    family = len({c.run for c in comparisons})
    how = (
        "uncorrected" if correction == "none" or family == 1 else f"{correction}-corrected over {family} runs"
    )
    first = comparisons[0]
    topics = f"{len(first.topics)} common topics"
    head = f"against {first.baseline} over {topics}; p-values two-sided, {how}; * p < .05"
    return head + "\n" + text_table([*header, *(f"p {t} " for t in tests)], rows, left=2)


def records(
    evaluations: Iterable[Evaluation], comparisons: Iterable[Comparison], per_topic: bool
) -> Iterable[dict[str, Any]]:
    """One dictionary per value, with ir_measures' keys (query_id with -q only) and the run's name."""
    for e in evaluations:
        if per_topic:
            for qid in e.topics:
                for m in e.measures:
                    yield {"run": e.name, "query_id": qid, "measure": m, "value": plain(e.per_topic[m][qid])}
        for m in e.measures:
            query = {"query_id": SUMMARY} if per_topic else {}
            yield {"run": e.name, **query, "measure": m, "value": plain(e.mean[m])}
    for c in comparisons:
        yield comparison_record(c)


def comparison_record(c: Comparison) -> dict[str, Any]:
    return {
        "run": c.run, "baseline": c.baseline, "measure": c.measure, "topics": len(c.topics),
        "mean": plain(c.mean), "baseline_mean": plain(c.baseline_mean), "difference": plain(c.difference),
        "confidence": [plain(x) for x in c.confidence],
        "wins": c.wins, "ties": c.ties, "losses": c.losses,
        "cohens_d": plain(c.cohens_d), "superiority": plain(c.superiority),
        "tests": {
            t: {"statistic": plain(r.statistic), "p": plain(r.p_value), "p_corrected": plain(c.corrected[t])}
            for t, r in c.tests.items()
        },
    }  # fmt: skip


def plain(value: float) -> float | None:
    """JSON has no nan and no infinity."""
    return value if math.isfinite(value) else None


def write_csv(evaluations: Sequence[Evaluation], per_topic: bool) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["run", "query_id", "measure", "value"])
    for record in records(evaluations, (), per_topic):
        writer.writerow([record["run"], record.get("query_id", SUMMARY), record["measure"], record["value"]])


# --- by time --------------------------------------------------------------------------------


def time_slices(
    args: argparse.Namespace, runs: Sequence[NamedRun], qrels: Any, measures: Sequence[str]
) -> dict[str, list[TimeSlice]]:
    if args.time_of == "query" or (args.time_of is None and args.topic_times is not None):
        if args.topic_times is None:
            raise ParameterError("--time-of query needs the query times", remedy="Pass --topic-times FILE.")
        from sdretrieval.trec import read_times

        times: Mapping[str, int] = read_times(args.topic_times)
        slices: Callable[..., list[TimeSlice]] = evaluate_by_query_time
    else:
        times = document_times(args, (docid for qid in qrels for docid in qrels[qid]))
        if not times:
            raise ParameterError(
                "--by-time needs times",
                remedy="Pass --topic-times FILE, --doc-times FILE or a dated --index.",
            )
        slices = evaluate_by_relevant_time
    choices = {"complete": args.complete, "rel": args.rel}
    return {r.name: slices(r.run, qrels, times, args.by_time, measures, name=r.name, **choices) for r in runs}


def document_times(args: argparse.Namespace, wanted: Iterable[str]) -> dict[str, int]:
    """Times of the wanted documents from --doc-times or --index; empty where neither is given."""
    if args.doc_times is not None:
        return read_document_times(args.doc_times)
    times: dict[str, int] = {}
    if args.index is not None:
        from sdretrieval.snapshot import open_snapshot
        from sdretrieval.times import UNDATED

        snapshot = open_snapshot(args.index)
        for docid in set(wanted):
            i = snapshot.docids.find(docid)
            if i >= 0 and snapshot.times[i] != UNDATED:
                times[docid] = int(snapshot.times[i])
    return times


def write_slices(slices: Mapping[str, Sequence[TimeSlice]], args: argparse.Namespace) -> None:
    lines = [(name, s) for name, parts in slices.items() for s in parts]
    measures = lines[0][1].evaluation.measures if lines else ()
    if args.output == "table":
        rows = [
            [name, s.period, str(s.topics), str(s.relevant)]
            + [number(s.evaluation.mean[m], args.places) for m in measures]
            for name, s in lines
        ]
        print(text_table(["run", "period", "topics", "relevant", *measures], rows, left=2))
        return
    writer = csv.writer(sys.stdout, lineterminator="\n")
    if args.output == "csv":
        writer.writerow(["run", "period", "topics", "relevant", "measure", "value"])
    for name, s in lines:
        for m in measures:
            value = plain(s.evaluation.mean[m])
            if args.output == "csv":
                writer.writerow([name, s.period, s.topics, s.relevant, m, value])
            else:
                record = {"run": name, "period": s.period, "topics": s.topics, "relevant": s.relevant}
                print(json.dumps({**record, "measure": m, "value": value}, ensure_ascii=False))
