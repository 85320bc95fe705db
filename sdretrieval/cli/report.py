"""``sdretrieval report QRELS RUN …``: one HTML page that shows which run is better, where and why."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from sdretrieval.cli.evaluate import (
    add_inputs,
    add_measures,
    add_significance,
    add_times,
    check_overlap,
    document_times,
    tell,
    with_baseline,
)
from sdretrieval.errors import ParameterError
from sdretrieval.evaluate import PERIODS, Evaluator, compare
from sdretrieval.evaluate.inputs import NamedRun, read_documents, read_runs

EXAMPLE = """\
examples:
  sdretrieval report qrels/cacm.txt QL=runs/ql.trec SD=runs/sd.trec --topics topics.tsv --output report.html
  sdretrieval report qrels/mb.txt runs/*.trec --measures AP P@30 --topics topics.tsv \\
      --topic-times times.tsv --documents docs.jsonl.gz --output report.html --plots figures --latex table.tex

The page needs no network. Beside each run, RUN.manifest.json and RUN.expansion.jsonl are read where they
exist. The first run is the baseline unless --baseline names another.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    add_inputs(parser)
    add_measures(parser)
    add_significance(parser)
    parser.add_argument("--output", "-o", required=True, metavar="HTML", help="the page to write")
    parser.add_argument("--title", default="Retrieval report", help="heading of the page")
    parser.add_argument(
        "--collection", default="", metavar="NAME", help="name of the collection, for headings"
    )
    parser.add_argument("--topics", metavar="FILE", help="topics, for the query texts and times")
    parser.add_argument(
        "--documents",
        metavar="JSONL",
        help='documents, for titles and dates: {"id", "title", "contents", "date"}',
    )
    parser.add_argument("--plots", metavar="FOLDER", help="also write figures for papers there")
    parser.add_argument(
        "--plot-format",
        nargs="+",
        choices=("png", "svg", "pdf"),
        default=["png", "svg"],
        help="default: png svg",
    )
    parser.add_argument("--latex", metavar="FILE", help="also write a LaTeX table of the means")
    group = parser.add_argument_group("dated collections")
    group.add_argument(
        "--by-time", choices=tuple(PERIODS), help="period of the measures by time (default: fitting)"
    )
    add_times(group)


def run(args: argparse.Namespace) -> int:
    from sdretrieval.report import Block, gather, latex_table, write_html
    from sdretrieval.trec import read_qrels, read_times, read_topics

    if not args.output.endswith((".html", ".htm")):
        raise ParameterError(f"--output is a page, got {args.output!r}", remedy="End its name in .html.")
    qrels = read_qrels(args.qrels)
    specs, baseline = with_baseline(args.runs, args.baseline)
    baseline = baseline or 0
    runs = read_runs(specs, beside=True)
    topics = read_topics(args.topics) if args.topics else []
    evaluator = Evaluator(qrels, args.measures, complete=args.complete, rel=args.rel)
    evaluations = [evaluator.evaluate(named.run, named.name) for named in runs]
    check_overlap(evaluations, runs, args.qrels)
    tell(evaluations)

    wanted = mentioned(runs, qrels)
    times = document_times(args, wanted)
    titles: dict[str, str] = {}
    if args.documents:
        titles, dates = read_documents(args.documents, wanted)
        times = dates | times
    data = gather(
        runs, qrels, measures=args.measures, baseline=baseline, complete=args.complete, rel=args.rel,
        tests=args.test, correction=args.correction, seed=args.seed, topics=topics,
        topic_times=read_times(args.topic_times) if args.topic_times else None,
        document_times=times, titles=titles, period=args.by_time,
        title=args.title, collection=args.collection,
    )  # fmt: skip
    write_html(args.output, data)
    written = [Path(args.output)]
    if args.plots:
        from sdretrieval.report.plots import write_plots

        written += write_plots(data, args.plots, args.plot_format)
    if args.latex:
        others = [e for i, e in enumerate(evaluations) if i != baseline]
        comparisons = compare(
            others, evaluations[baseline], tests=args.test, correction=args.correction, seed=args.seed
        )
        from sdretrieval.files import atomic_writer

        name = args.collection or Path(args.qrels).stem
        with atomic_writer(args.latex) as stream:
            stream.write(latex_table([Block(name, evaluations, comparisons)]))
        written.append(Path(args.latex))
    for path in written:
        print(path)
    print(f"open {args.output} in any browser; it needs no network", file=sys.stderr)
    return 0


def mentioned(runs: list[NamedRun], qrels: object) -> set[str]:
    """Documents the page may speak of: what the runs rank high, and what was judged."""
    from sdretrieval.report.gather import TIMELINE_DEPTH

    found = {d for named in runs for qid in named.run for d in named.run[qid].docids[:TIMELINE_DEPTH]}
    return found.union(*(grades.keys() for grades in qrels.values()))  # type: ignore[attr-defined]
