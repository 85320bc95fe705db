"""``sdretrieval drift``: how the language of a dated collection changes over time."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from sdretrieval.cli.value_types import natural, positive
from sdretrieval.core.errors import IndexProblem, ParameterError

if TYPE_CHECKING:
    from sdretrieval.estimate.time.drift import DriftAnalysis
    from sdretrieval.index.snapshot import Snapshot

EXAMPLE = """\
examples:
  the words that drift fastest, with the bandwidth chosen by cross-validation, printed:
    sdretrieval drift --index indexes/news

  three words, as plots (PNG, SVG) and tables (CSV, JSON):
    sdretrieval drift --index indexes/news --words oil tariff dollar --output runs/drift

  hour by hour, with a bandwidth of six hours:
    sdretrieval drift --index indexes/tweets --words earthquake --resolution hour --bandwidth 6h

Words are analysed (lower-cased, stemmed) as the documents were. A word of the collection is counted relative to all
words around that time, weighted by a kernel; bands are 95 % intervals that allow for words coming in bursts.
Undated documents are left out.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    from sdretrieval.estimate.time.kernels import kernel_names

    parser.epilog = EXAMPLE
    parser.add_argument("--index", required=True, metavar="DIR", help="a Lucene index with dates")
    parser.add_argument(
        "--words", nargs="+", metavar="WORD", default=None, help="words to follow (default: the six fastest)"
    )
    parser.add_argument("--kernel", choices=kernel_names(), default="tricube", help="default: %(default)s")
    parser.add_argument(
        "--bandwidth",
        default="auto",
        metavar="TIME|auto",
        help="days, or with a unit: 12h, 7d, 2w; inf is global; auto: by ten-fold likelihood (default)",
    )
    parser.add_argument(
        "--resolution",
        default="day",
        metavar="TIME",
        help="hour, day, week, month (a twelfth of a year), or a length of time: "
        "documents within it count as simultaneous (default: day)",
    )
    parser.add_argument(
        "--fastest", type=positive, default=20, metavar="N", help="how many fast words to list (default: %(default)s)"
    )
    parser.add_argument(
        "--vocabulary",
        type=positive,
        default=10_000,
        metavar="N",
        help="most frequent words that the likelihood looks at (default: %(default)s)",
    )
    parser.add_argument("--seed", type=natural, default=0, help="of the ten folds (default: %(default)s)")
    parser.add_argument("--output", metavar="FOLDER", help="write plots and tables there")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")


def run(args: argparse.Namespace) -> int:
    from sdretrieval.core.timeline import parse_duration

    resolution = parse_duration(args.resolution)
    bandwidth = None if args.bandwidth == "auto" else parse_duration(args.bandwidth)
    if args.output is not None and Path(args.output).exists() and not Path(args.output).is_dir():
        raise ParameterError(f"--output {args.output} is a file", remedy="Name a folder.")

    from sdretrieval.index.snapshot import open_snapshot

    snapshot = open_snapshot(args.index)
    if not snapshot.is_dated:
        raise IndexProblem(
            f"{args.index}: none of its {snapshot.n_docs} documents has a date",
            remedy="Re-index with `sdretrieval index --date-field NAME`.",
        )
    words = None if args.words is None else [find_word(snapshot, word) for word in args.words]

    from sdretrieval.estimate.time.drift import analyse
    from sdretrieval.estimate.time.drift_files import as_dict, write_tables

    analysis = analyse(
        snapshot.by_doc,
        snapshot.times,
        words=words,
        kernel=args.kernel,
        bandwidth=bandwidth,
        resolution=resolution,
        fastest=args.fastest,
        most_words=args.vocabulary,
        seed=args.seed,
    )
    if args.output is not None:
        from sdretrieval.estimate.time.drift_plots import write_plots

        folder = Path(args.output)
        written = [*write_tables(analysis, snapshot.term, folder), *write_plots(analysis, snapshot.term, folder)]
        print(f"wrote {len(written)} files to {folder}", file=sys.stderr)
    if args.json:
        json.dump(as_dict(analysis, snapshot.term), sys.stdout, ensure_ascii=False, indent=1)
        print()
    else:
        print(summary(analysis, snapshot))
    return 0


def find_word(snapshot: Snapshot, word: str) -> int:
    """The number of the one term a word of the command line stands for."""
    terms = snapshot.analyze(word)
    if len(terms) != 1:
        found = "nothing (a stop word?)" if not terms else " ".join(terms)
        raise ParameterError(
            f"--words {word!r} is analysed to {found}: a single term is needed", remedy="Give single words."
        )
    number = snapshot.term_id(terms[0])
    if number < 0:
        raise ParameterError(
            f"--words {word!r}: the term {terms[0]!r} stands in no document of the index",
            remedy="Check the spelling, or leave --words out to see which words drift.",
        )
    return number


def summary(analysis: DriftAnalysis, snapshot: Snapshot) -> str:
    """A few lines for people."""
    from sdretrieval.core.timeline import format_duration
    from sdretrieval.core.times import format_time

    day = slice(0, 10)
    first, last = (format_time(round(t))[day] for t in (analysis.first, analysis.last))
    how = "by ten-fold likelihood" if analysis.chosen else "as given"
    undated = f", {analysis.undated} without a date left out" if analysis.undated else ""
    lines = [
        f"{analysis.dated} documents from {first} to {last}{undated}",
        f"bandwidth: {format_duration(analysis.bandwidth)} ({analysis.kernel.name}, {how})",
        "",
        f"log-likelihood of a held-out word, {analysis.likelihood_words} most frequent words:",
        f"  offline, best h  {analysis.offline.scores.max():9.4f}   {format_duration(analysis.offline.bandwidth)}",
        f"  online, best h   {analysis.online.scores.max():9.4f}   {format_duration(analysis.online.bandwidth)}",
        f"  global, h = ∞    {analysis.global_score:9.4f}",
        f"  local, h → 0     {analysis.extreme_local:9.4f}",
    ]
    if not analysis.fastest:
        return "\n".join([*lines, "", "no word is told better by a local model than by the global one"])
    width = max(8, *(len(snapshot.term(word.term)) for word in analysis.fastest))
    lines += ["", f"  {'word':<{width}}  occurrences  gain (bits)  peak        x its mean"]
    for word in analysis.fastest:
        lines.append(
            f"  {snapshot.term(word.term):<{width}}  {word.occurrences:11d}  {word.gain_bits:11.0f}  "
            f"{format_time(round(word.peak_time))[day]}  {word.ratio:10.1f}"
        )
    return "\n".join(lines)
