"""``sdretrieval evaluate QRELS RUN …``: measures of runs as trec_eval computes them.

``compare`` and ``report`` take the same runs, measures and tests: flags and tables that they share are here.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import sys
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sdretrieval.cli.value_types import moment, natural, positive
from sdretrieval.collection.records import Qrels, Run
from sdretrieval.core.errors import InputError, ParameterError, few
from sdretrieval.core.files import atomic_writer
from sdretrieval.core.tables import json_number, number, probability, text_table
from sdretrieval.evaluate.curves import CURVE_MEASURES
from sdretrieval.evaluate.inputs import ENDINGS, NamedRun, read_document_times, read_runs, with_baseline
from sdretrieval.evaluate.measures import DEFAULT_MEASURES, Evaluation, Evaluator, is_measure
from sdretrieval.evaluate.residual import residual_qrels, residual_run, shortened
from sdretrieval.evaluate.significance import CORRECTIONS, TESTS, Comparison, Pair, compare, tukey
from sdretrieval.evaluate.systems import measure_agreement
from sdretrieval.evaluate.time_slices import PERIODS, TimeSlice, evaluate_by_time

SUMMARY = "all"  # what trec_eval and ir_measures call the mean over topics

EXAMPLE = """\
examples:
  sdretrieval evaluate qrels/cacm.txt runs/ql.trec runs/sd.trec --measures AP P@5 nDCG@10
  sdretrieval evaluate qrels/cacm.txt runs/ql.trec AP P@5 -q --output-format jsonl
  sdretrieval evaluate -q -m map -m P.5,10 qrels/cacm.txt runs/ql.trec
  sdretrieval evaluate qrels/cacm.txt runs/ql.trec SD=runs/sd.trec --baseline runs/ql.trec --test t wilcoxon
  sdretrieval evaluate qrels/cacm.txt runs/bm25.trec runs/sd.trec --residual feedback.txt
  sdretrieval evaluate qrels/mb.txt runs/ql.trec --by-time week --topic-times topics.times.tsv
  sdretrieval evaluate qrels/mb.txt runs/ql.trec --topic-times topics.times.tsv --from 2011-02-01

Measures are written as ir_measures writes them (AP, P@5, nDCG@10, RR, R@1000, AP(rel=2), IPrec@0.1);
trec_eval's names (map, P_5, ndcg_cut_10) are understood. Topics are counted as trec_eval counts them, and
stderr says which were left out.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    add_evaluation_arguments(parser)
    add_output_arguments(parser, "table", "jsonl", "csv", "latex")
    add = parser.add_argument
    add("-q", "--per-topic", action="store_true", help="also print every topic")
    add("--agreement", action="store_true", help="τ and τ_ap between the orders that measures put the runs in")
    add("-n", "--no-summary", action="store_true", help="with -q: no line of means (trec_eval -n)")
    add("--recall-precision", action="store_true", help="add interpolated precision at the 11 recall levels")
    group = parser.add_argument_group("by time")
    group.add_argument("--by-time", choices=tuple(PERIODS), help="the measures by calendar period (UTC)")
    whose = (
        "period of the query, or of the relevant documents: those of other periods are then left out of judgments "
        "and runs (default: query with --topic-times, else relevant)"
    )
    group.add_argument("--time-of", choices=("query", "relevant"), help=whose)
    add_times_arguments(group)


def run(args: argparse.Namespace) -> int:
    settle_output(args)
    if args.output_format == "latex" and (args.per_topic or args.by_time):
        raise ParameterError("latex has neither topics nor periods", remedy="Use --output-format csv.")
    if args.by_time and (args.per_topic or args.baseline):
        raise ParameterError("--by-time prints means only", remedy="Drop --per-topic and --baseline.")
    settle_words(args)
    args.measures += CURVE_MEASURES if args.recall_precision else ()
    found = evaluate_runs(args)
    with output_of(args):
        write(args, found)
    return 0


def write(args: argparse.Namespace, found: EvaluatedRuns) -> None:
    comparisons = compare_runs(args, found) if args.baseline else []
    if args.by_time:
        write_slices(time_slices(args, found), args)
    elif args.output_format == "table":
        print(means_table(found.evaluations, args.places, args.per_topic, summary=not args.no_summary))
        if comparisons:
            print("\n" + comparison_tables(comparisons, args.places, args.correction))
        if args.tukey:
            print("\n" + tukey_table(found.evaluations, args.places))
        if args.agreement:
            agreement = measure_agreement(found.evaluations).items()
            rows = [[*pair, *(number(value, args.places) for value in taus)] for pair, taus in agreement]
            print("\n" + text_table(["measure", "and", "Kendall's τ of the runs", "τ_ap"], rows, left=2))
    elif args.output_format == "latex":
        from sdretrieval.evaluate.report.latex import Block, latex_table

        print(latex_table([Block(Path(args.qrels).stem, found.evaluations, comparisons)]), end="")
    else:
        values = value_records(found.evaluations, args.per_topic, summary=not args.no_summary)
        write_records(values, args.output_format, "run", "query_id", "measure", "value")
        if args.output_format == "jsonl":
            write_records(map(comparison_record, comparisons))
            if args.agreement:
                found_taus = measure_agreement(found.evaluations).items()
                write_records({"measures": pair, "tau": t, "tau_ap": ap} for pair, (t, ap) in found_taus)
            if args.tukey:
                write_records({"test": "tukey", **vars(pair)} for pair in tukey_pairs(found.evaluations))


# -- flags --------------------------------------------------------------------------------------------------------


def add_evaluation_arguments(parser: argparse.ArgumentParser) -> None:
    """Judgments, runs, measures, tests: what :func:`evaluate_runs` and :func:`compare_runs` read."""
    add, measures = parser.add_argument, " ".join(DEFAULT_MEASURES)
    add("qrels", metavar="QRELS", help="judgments, qid 0 docid relevance; a judging project; an id of ir_datasets")
    add("runs", metavar="RUN", nargs="+", help="TREC run, or NAME=RUN to choose its name; or the name of a measure")
    add("--measures", "-m", nargs="+", action="extend", default=[], metavar="M", help=f"default: {measures}")
    add("--complete", "-c", action="store_true", help="judged topics without results count as zero (trec_eval -c)")
    add("--rel", "-l", type=int, metavar="N", help="least grade that counts as relevant (trec_eval -l; default 1)")
    add("--depth", "-M", type=positive, metavar="N", help="look at the first N documents only (trec_eval -M)")
    add("--condensed", "-J", action="store_true", help="leave unjudged documents out of the runs (trec_eval -J)")
    add("--residual", metavar="QRELS", help="leave out what this file judges: runs learnt from it (--feedback-qrels)")
    add = parser.add_argument_group("significance").add_argument
    baseline = "compare every other run with this one (a path or name); may be repeated"
    add("--baseline", metavar="RUN", action="append", default=[], help=baseline)
    add("--test", nargs="+", choices=tuple(TESTS), default=list(TESTS), help="default: all four")
    add("--correction", choices=CORRECTIONS, default="holm", help="over the runs compared (default: holm)")
    add("--seed", type=natural, default=0, help="of the randomisation test (default 0)")
    add("--tukey", action="store_true", help="all pairs of runs by Tukey's HSD, topics as blocks")


def add_output_arguments(parser: Any, *forms: str) -> None:
    add = parser.add_argument
    add("--output-format", choices=forms, default=forms[0], help=f"default: {forms[0]}")
    add("--output", "-o", metavar="FILE", help="write there instead of to the screen; .gz compresses it")
    add("--places", "-p", type=int, default=4, metavar="N", help="decimals in tables (default 4; -1: all)")


def add_times_arguments(group: Any) -> None:
    group.add_argument("--topic-times", metavar="FILE", help="query times: qid, tab, time")
    since = "only topics asked at this time or later, as in 2011-02-08 (with --topic-times)"
    group.add_argument("--from", dest="since", metavar="TIME", type=moment, help=since)
    group.add_argument("--until", metavar="TIME", type=moment, help="only topics asked before this time")
    group.add_argument("--doc-times", metavar="FILE", help="document times: docid, tab, time")
    group.add_argument("--index", metavar="PATH", help="index whose document times are used")


def files_before_measures(words: Sequence[str]) -> list[str]:
    """A command line whose ``-m`` takes no files: trec_eval's ``-m map QRELS RUN`` as ``QRELS RUN -m map``.

    Flags of several values take all words up to the next flag; what exists as a file is no measure.
    """
    kept: list[str] = []
    first: int | None = None  # where the first flag after the verb stands: files go before it
    after_measures = False
    for word in words:
        if word.startswith("-"):
            after_measures = word in ("-m", "--measures")
            first = len(kept) if first is None and any(not one.startswith("-") for one in kept) else first
        if after_measures and first is not None and _is_file_name(word):
            kept.insert(first, word)
            first += 1
        else:
            kept.append(word)
    return kept


def _is_file_name(word: str) -> bool:
    """A file that is there, or a name that only files have."""
    path = word.partition("=")[2] or word
    return Path(path).is_file() or Path(word).is_file() or "/" in word or path.endswith(ENDINGS)


def settle_words(args: argparse.Namespace) -> None:
    """Names of measures among the runs are measures, as ir_measures has them; none at all are the usual ones."""
    names = [word for word in args.runs if not Path(word).exists() and is_measure(word)]
    files = [word for word in args.runs if word not in names]
    args.runs, args.measures = files, [*args.measures, *names] or list(DEFAULT_MEASURES)
    if not files:
        raise ParameterError("no run was named", remedy="Name the judgments first, then runs: QRELS RUN …")


def settle_output(args: argparse.Namespace) -> None:
    """``--output`` and ``-o`` were the format up to version 0.1: still understood, with a note."""
    if args.output in ("table", "jsonl", "csv", "latex"):
        note = f"{args.output} is a format: that is --output-format {args.output} now; --output (-o) is a file"
        print(note, file=sys.stderr)
        args.output_format, args.output = args.output, None


@contextmanager
def output_of(args: argparse.Namespace) -> Iterator[None]:
    """What is printed goes to the file of ``--output``, where one is named."""
    if args.output is None:
        yield
        return
    with atomic_writer(args.output) as stream, redirect_stdout(stream):
        yield


# -- what they name, measured -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class EvaluatedRuns:
    """The runs of a command line, and how good they are; ``baselines`` are positions of some of them."""

    qrels: Qrels
    runs: list[NamedRun]
    evaluations: list[Evaluation]
    baselines: tuple[int, ...]

    @property
    def baseline(self) -> int:
        """The first, which plots and tables of topics go by."""
        return self.baselines[0]

    @property
    def others(self) -> list[Evaluation]:
        return self.others_than(self.baseline)

    def others_than(self, baseline: int) -> list[Evaluation]:
        return [e for i, e in enumerate(self.evaluations) if i != baseline]


def evaluate_runs(args: argparse.Namespace, *, beside: bool = False) -> EvaluatedRuns:
    """Read and measure; the first run is the baseline where none is named. ``beside``: as of ``read_runs``."""
    from sdretrieval.plugins.named import qrels_of

    qrels, seen = qrels_of(args.qrels), Qrels({}) if args.residual is None else qrels_of(args.residual)
    qrels = residual_qrels(qrels, seen) if seen else qrels
    asked = asked_within(args)
    if asked is not None:
        qrels = Qrels({qid: grades for qid, grades in qrels.items() if qid in asked})
    evaluator = Evaluator(qrels, args.measures, complete=args.complete, rel=args.rel)
    specs, baselines = args.runs, []
    for baseline in args.baseline:
        specs, _ = with_baseline(specs, baseline)
    baselines = [with_baseline(specs, baseline)[1] for baseline in args.baseline]
    runs = read_runs(specs, beside=beside)
    if asked is not None:
        runs = [replace(named, run=_of_topics(named.run, asked)) for named in runs]
    if seen:
        runs = [replace(named, run=residual_run(named.run, seen)) for named in runs]
    if args.condensed or args.depth:
        kept = qrels if args.condensed else None
        runs = [replace(named, run=shortened(named.run, judged=kept, depth=args.depth)) for named in runs]
    evaluations = [evaluator.evaluate(named.run, named.name) for named in runs]
    for evaluation, named in zip(evaluations, runs, strict=True):
        if not evaluation.topics or set(evaluation.topics) <= set(evaluation.missing_topics):
            ranked, judged = few(evaluation.unjudged_topics, 3) or "none", few(evaluation.missing_topics, 3) or "none"
            raise InputError(
                f"no topic of the run ({ranked}) is judged in {args.qrels} ({judged})",
                file=named.path,
                remedy="Check that run and qrels belong together and write topic ids alike.",
            )
    print_notes(evaluations)
    return EvaluatedRuns(qrels, runs, evaluations, tuple(place or 0 for place in baselines) or (0,))


def asked_within(args: argparse.Namespace) -> set[str] | None:
    """The topics asked between --from and --until; None where neither is given."""
    since, until = getattr(args, "since", None), getattr(args, "until", None)
    if since is None and until is None:
        return None
    if args.topic_times is None:
        raise ParameterError("--from and --until need the query times", remedy="Pass --topic-times FILE.")
    from sdretrieval.collection.trec import read_times

    times = read_times(args.topic_times)
    asked = {q for q, t in times.items() if (since is None or t >= since) and (until is None or t < until)}
    if not asked:
        raise InputError(
            f"none of the {len(times)} topics was asked in that period",
            file=args.topic_times,
            remedy="--until is not part of the period: it must be later than --from.",
        )
    return asked


def _of_topics(run: Run, qids: Container[str]) -> Run:
    return Run({qid: ranking for qid, ranking in run.items() if qid in qids}, run.tag)


def print_notes(evaluations: Sequence[Evaluation]) -> None:
    """Which topics were not counted, or counted as zero, on stderr."""
    for evaluation in evaluations:
        for note in evaluation.notes():
            print(f"{evaluation.name}: {note}", file=sys.stderr)
    if len({evaluation.topics for evaluation in evaluations}) > 1:
        print("the runs' means are over different topics; --complete makes them comparable", file=sys.stderr)


def compare_runs(args: argparse.Namespace, found: EvaluatedRuns) -> list[Comparison]:
    """Every other run against each baseline."""
    how: dict[str, Any] = {"tests": args.test, "correction": args.correction, "seed": args.seed}
    return [c for i in found.baselines for c in compare(found.others_than(i), found.evaluations[i], **how)]


# -- tables and records -------------------------------------------------------------------------------------------


def means_table(
    evaluations: Sequence[Evaluation], places: int, per_topic: bool = False, *, summary: bool = True
) -> str:
    measures = evaluations[0].measures
    means = [[number(e.mean[m], places) for m in measures] for e in evaluations]
    if not per_topic:
        rows = [[e.name, str(len(e.topics)), *values] for e, values in zip(evaluations, means, strict=True)]
        return text_table(["run", "topics", *measures], rows)
    rows = [
        [e.name, qid, *(number(e.per_topic[m][qid], places) for m in measures)] for e in evaluations for qid in e.topics
    ]
    rows += [[e.name, SUMMARY, *values] for e, values in zip(evaluations, means, strict=True) if summary]
    return text_table(["run", "topic", *measures], rows, left=2)


def comparison_tables(comparisons: Sequence[Comparison], places: int, correction: str) -> str:
    """One table for each baseline."""
    parts = [[c for c in comparisons if c.baseline == name] for name in dict.fromkeys(c.baseline for c in comparisons)]
    return "\n\n".join(_comparison_table(part, places, correction) for part in parts)


def _comparison_table(comparisons: Sequence[Comparison], places: int, correction: str) -> str:
    tests = list(comparisons[0].tests)
    header = ["run", "measure", "mean", "difference", "%", "95% interval", "win/tie/loss", "d", "P(sup)"]
    rows = []
    for c in comparisons:
        low, high = (number(x, places, sign=True) for x in c.confidence)
        rows.append(
            [
                c.run,
                c.measure,
                number(c.mean, places),
                number(c.difference, places, sign=True),
                number(100 * c.relative, 1, sign=True),
                f"{low} .. {high}",
                f"{c.wins}/{c.ties}/{c.losses}",
                number(c.cohens_d, 2, sign=True),
                number(c.superiority, 2),
                *(probability(c.corrected[t]) + ("*" if c.significant(t) else " ") for t in tests),
            ]
        )
    family = len({c.run for c in comparisons})
    how = "uncorrected" if correction == "none" or family == 1 else f"{correction}-corrected over {family} runs"
    first = comparisons[0]
    topics = f"{len(first.topics)} common topics"
    head = f"against {first.baseline} over {topics}; p-values two-sided, {how}; * p < .05"
    return head + "\n" + text_table([*header, *(f"p {t} " for t in tests)], rows, left=2)


def tukey_pairs(evaluations: Sequence[Evaluation]) -> list[Pair]:
    return [pair for measure in evaluations[0].measures for pair in tukey(evaluations, measure)]


def tukey_table(evaluations: Sequence[Evaluation], places: int) -> str:
    rows = []
    for pair in tukey_pairs(evaluations):
        low, high = (number(x, places, sign=True) for x in pair.confidence)
        told = [number(pair.difference, places, sign=True), f"{low} .. {high}", probability(pair.p_value)]
        rows.append([pair.run, pair.other, pair.measure, *told])
    head = "all pairs by Tukey's HSD, topics as blocks; intervals and p-values hold for all pairs of a measure at once"
    return head + "\n" + text_table(["run", "other", "measure", "difference", "95% interval", "p"], rows, left=3)


def write_records(records: Iterable[Mapping[str, Any]], form: str = "jsonl", *columns: str) -> None:
    """JSON lines, or a CSV of these columns, to stdout."""
    if form == "csv":
        writer = csv.DictWriter(sys.stdout, columns, restval=SUMMARY, lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)
    else:
        for record in records:
            print(json.dumps(record, ensure_ascii=False))


def value_records(
    evaluations: Iterable[Evaluation], per_topic: bool, *, summary: bool = True
) -> Iterator[dict[str, Any]]:
    """One dictionary per value, with ir_measures' keys (query_id with -q only) and the run's name."""
    for e in evaluations:
        if per_topic:
            for qid in e.topics:
                for m in e.measures:
                    yield {"run": e.name, "query_id": qid, "measure": m, "value": json_number(e.per_topic[m][qid])}
        for m in e.measures if summary or not per_topic else ():
            query = {"query_id": SUMMARY} if per_topic else {}
            yield {"run": e.name, **query, "measure": m, "value": json_number(e.mean[m])}


def comparison_record(c: Comparison) -> dict[str, Any]:
    record = {name: json_number(value) for name, value in vars(c).items()}
    corrected = record.pop("corrected")
    values = {t: (r.statistic, r.p_value, corrected[t]) for t, r in c.tests.items()}
    names = ("statistic", "p", "p_corrected")
    tests = {t: dict(zip(names, map(json_number, numbers), strict=True)) for t, numbers in values.items()}
    return record | {"topics": len(c.topics), "confidence": [json_number(x) for x in c.confidence], "tests": tests}


# -- by time ------------------------------------------------------------------------------------------------------


def time_slices(args: argparse.Namespace, found: EvaluatedRuns) -> Iterator[tuple[str, TimeSlice]]:
    """The run's name and one of its periods."""
    time_of = args.time_of or ("relevant" if args.topic_times is None else "query")
    if time_of == "relevant":
        times = document_times(args, {docid for grades in found.qrels.values() for docid in grades})
        if not times:
            raise ParameterError(
                "--by-time needs times", remedy="Pass --topic-times FILE, --doc-times FILE or a dated --index."
            )
    elif args.topic_times is None:
        raise ParameterError("--time-of query needs the query times", remedy="Pass --topic-times FILE.")
    else:
        from sdretrieval.collection.trec import read_times

        times = read_times(args.topic_times)
    choices: dict[str, Any] = {"time_of": time_of, "complete": args.complete, "rel": args.rel}
    for named in found.runs:
        for part in evaluate_by_time(named.run, found.qrels, times, args.by_time, args.measures, **choices):
            yield named.name, part


def _drop(first: Mapping[str, float], mean: Mapping[str, float], measure: str) -> float:
    """LongEval's relative drop: (first period - this one) / first period."""
    return (first[measure] - mean[measure]) / first[measure] if first[measure] else math.nan


def _percent(*of: Any) -> str:
    return number(100 * _drop(*of), 1, sign=True)


def document_times(args: argparse.Namespace, wanted: set[str]) -> dict[str, int]:
    """Times of the wanted documents from --doc-times or --index; empty where neither is given."""
    if args.doc_times is not None:
        return read_document_times(args.doc_times)
    times: dict[str, int] = {}
    if args.index is not None:
        from sdretrieval.core.times import UNDATED
        from sdretrieval.index.snapshot import open_snapshot

        snapshot = open_snapshot(args.index)
        for docid in wanted:
            i = snapshot.docids.find(docid)
            if i >= 0 and snapshot.times[i] != UNDATED:
                times[docid] = int(snapshot.times[i])
    return times


def write_slices(slices: Iterable[tuple[str, TimeSlice]], args: argparse.Namespace) -> None:
    columns = ["run", "period", "topics", "relevant"]
    rows = [((name, s.period, s.topics, s.relevant), s.evaluation.mean) for name, s in slices]
    measures = list(rows[0][1]) if rows else []
    first = {name: mean for (name, *_), mean in reversed(rows)}
    if args.output_format == "table":
        cells = [
            [
                *map(str, row),
                *(number(mean[m], args.places) for m in measures),
                _percent(first[row[0]], mean, measures[0]),
            ]
            for row, mean in rows
        ]
        print(text_table([*columns, *measures, f"drop of {measures[0]}, %"], cells, left=2))
        return
    values = (
        {**dict(zip(columns, row, strict=True)), "measure": m, "value": json_number(mean[m])}
        | {"drop": json_number(_drop(first[row[0]], mean, m))}
        for row, mean in rows
        for m in measures
    )
    write_records(values, args.output_format, *columns, "measure", "value", "drop")
