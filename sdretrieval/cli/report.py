"""``sdretrieval report QRELS RUN …``: one HTML page that shows which run is better, where and why."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from sdretrieval.cli.evaluate import (
    EvaluatedRuns,
    add_evaluation_arguments,
    add_times_arguments,
    compare_runs,
    document_times,
    evaluate_runs,
    settle_words,
)
from sdretrieval.core.errors import ParameterError
from sdretrieval.evaluate.inputs import read_documents
from sdretrieval.evaluate.time_slices import PERIODS

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
    add_evaluation_arguments(parser)
    add = parser.add_argument
    add("--output", "-o", required=True, metavar="HTML", help="the page to write")
    add("--title", default="Retrieval report", help="heading of the page")
    add("--collection", default="", metavar="NAME", help="name of the collection, for headings")
    add("--topics", metavar="FILE", help="topics, for the query texts and times")
    documents = 'documents, for titles and dates: {"id", "title", "contents", "date"}'
    add("--documents", metavar="JSONL", help=documents)
    add("--plots", metavar="FOLDER", help="also write figures for papers there")
    add("--plot-format", nargs="+", choices=("png", "svg", "pdf"), default=["png", "svg"], help="default: png svg")
    add("--latex", metavar="FILE", help="also write a LaTeX table of the means")
    group = parser.add_argument_group("dated collections")
    group.add_argument("--by-time", choices=tuple(PERIODS), help="period of the measures by time (default: fitting)")
    add_times_arguments(group)


def run(args: argparse.Namespace) -> int:
    from sdretrieval.collection.trec import read_times, read_topics
    from sdretrieval.evaluate.report import gather, write_html
    from sdretrieval.plugins.named import named_topics

    if not args.output.endswith((".html", ".htm")):
        raise ParameterError(f"--output is a page, got {args.output!r}", remedy="End its name in .html.")
    settle_words(args)
    topics = [] if not args.topics else named_topics(args.topics) or read_topics(args.topics)
    found = evaluate_runs(args, beside=True)
    wanted = find_mentioned(found)
    titles: dict[str, str] = {}
    times = document_times(args, wanted)
    if args.documents:
        titles, dates = read_documents(args.documents, wanted)
        times = dates | times
    same = ("measures", "complete", "rel", "correction", "seed", "title", "collection")
    data = gather(
        found.runs,
        found.qrels,
        **{name: getattr(args, name) for name in same},
        baseline=found.baseline,
        tests=args.test,
        topics=topics,
        topic_times=read_times(args.topic_times) if args.topic_times else None,
        document_times=times,
        titles=titles,
        period=args.by_time,
    )
    write_html(args.output, data)
    print(Path(args.output))
    if args.plots:
        from sdretrieval.evaluate.report.plots import write_plots

        print(*write_plots(data, args.plots, args.plot_format), sep="\n")
    if args.latex:
        write_latex(args, found)
        print(Path(args.latex))
    print(f"open {args.output} in any browser; it needs no network", file=sys.stderr)
    return 0


def find_mentioned(found: EvaluatedRuns) -> set[str]:
    """Documents the page may speak of: what the runs rank high, and what was judged."""
    from sdretrieval.evaluate.report.gather import TIMELINE_DEPTH

    ranked = {d for named in found.runs for qid in named.run for d in named.run[qid].docids[:TIMELINE_DEPTH]}
    return ranked.union(*found.qrels.values())


def write_latex(args: argparse.Namespace, found: EvaluatedRuns) -> None:
    from sdretrieval.core.files import atomic_writer
    from sdretrieval.evaluate.report import Block, latex_table

    name = args.collection or Path(args.qrels).stem
    with atomic_writer(args.latex) as stream:
        stream.write(latex_table([Block(name, found.evaluations, compare_runs(args, found))]))
