"""Flags about time, shared by search, rerank, tune and explain: they turn any model into a time-aware one."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from sdretrieval.cli.value_types import moment, positive
from sdretrieval.core.errors import ParameterError, few
from sdretrieval.estimate.time.kernels import kernel_names

if TYPE_CHECKING:
    from sdretrieval.collection.records import Run, Topic
    from sdretrieval.index.snapshot import Snapshot
    from sdretrieval.ranking.base import Ranker
    from sdretrieval.ranking.notes import AutoTimeNote
    from sdretrieval.ranking.retrieval import Report

# Flags that say something only beside another one.
_NEEDS = {
    "kernel": ("time_prior", "background", "feedback_time"),
    "bandwidth": ("time_prior", "background", "feedback_time"),
    "time_weight": ("time_prior",),
    "time_evidence": ("time_prior",),
    "time_docs": ("time_prior",),
    "background_at": ("background",),
    "feedback_time_weight": ("feedback_time",),
}
_OFF = {"time_prior": "none", "background": "global", "feedback_time": "none"}
_ON = {"time_prior": "recency", "background": "local", "feedback_time": "query"}  # as remedies name them


def add_time_arguments(parser: argparse.ArgumentParser, *, leak_check: bool = True) -> None:
    group = parser.add_argument_group(
        "time", "start with --time-prior auto; docs/TIME.md has the rest; without any, time plays no part"
    )
    group.add_argument(
        "--time-prior",
        choices=("none", "auto", "recency", "density"),
        default="none",
        help="auto: whatever the evidence is for, nothing where there is none; recency: fades backwards from the "
        "query's time; density: where the first documents crowd in time (default: none)",
    )
    group.add_argument(
        "--as-of",
        choices=("query-time", "query-time-inclusive"),
        help="rank and count only documents before the query's time (inclusive: or at it)",
    )
    if leak_check:
        group.add_argument(
            "--leak-check", action="store_true", help="also say how much knowing the future would change the run"
        )
    group.add_argument("--kernel", choices=kernel_names(), help="of whatever is asked for (default: its own)")
    group.add_argument(
        "--bandwidth",
        metavar="VALUE|auto",
        help="of the kernel: days, or with a unit (12h, 7d, 2w); cv for a cross-validated density (default: auto)",
    )
    group.add_argument(
        "--time-weight",
        metavar="VALUE|auto",
        help="of the prior, in spreads of the best scores (default: auto, down to 0 where time tells nothing)",
    )
    group.add_argument(
        "--time-evidence",
        choices=("score", "posterior", "rank", "uniform"),
        help="weights of the first documents as evidence of when relevance lies (default: score)",
    )
    group.add_argument("--time-docs", metavar="N", type=positive, help="how many first documents (default: 50)")
    group.add_argument(
        "--background",
        choices=("global", "local", "penalised"),
        default="global",
        help="general English, or a local model of it, in smoothing (default: global)",
    )
    group.add_argument(
        "--background-at", choices=("query", "document"), help="whose time the background is of (default: query)"
    )
    group.add_argument(
        "--feedback-time",
        choices=("none", "query", "mode"),
        default="none",
        help="weigh feedback documents by how near they are in time to the query, or to the densest time",
    )
    group.add_argument("--feedback-time-weight", metavar="VALUE", help="exponent of that weight (default: 1)")
    group.add_argument(
        "--from",
        dest="since",
        metavar="TIME",
        type=moment,
        help="rank only documents of this time or later, as in 2011-02-08; statistics stay those of the collection",
    )
    group.add_argument("--until", metavar="TIME", type=moment, help="rank only documents before this time")


def time_from(args: argparse.Namespace, ranker: Ranker) -> Ranker:
    """The model, wrapped where a flag about time was given."""
    _check(args)
    if args.since is not None or args.until is not None:
        from sdretrieval.ranking.time.period import Period

        ranker = Period(ranker=ranker, since=args.since, until=args.until)
    if not plays_a_part(args):
        return ranker
    from sdretrieval.ranking.time.drifting_background import Drifting
    from sdretrieval.ranking.time.prior import make_prior
    from sdretrieval.ranking.time.wrappers import Auto, FeedbackTime, time_aware

    bandwidth = _bandwidth(args)
    kernel = {} if args.kernel is None else {"kernel": args.kernel}
    background = feedback = None
    if args.background != "global":
        fixed = None if isinstance(bandwidth, str) else bandwidth
        background = Drifting(args.background, args.background_at or "query", bandwidth=fixed, **kernel)
    if args.feedback_time != "none":
        exponent = _number("--feedback-time-weight", args.feedback_time_weight or "1")
        auto_or_fixed = "auto" if isinstance(bandwidth, str) else bandwidth
        feedback = FeedbackTime(args.feedback_time, bandwidth=auto_or_fixed, weight=exponent, **kernel)
    weight = None if args.time_weight in (None, "auto") else _number("--time-weight", args.time_weight)
    automatic = Auto() if args.time_docs is None else Auto(docs=args.time_docs)
    named = args.time_prior if args.time_prior != "auto" else "none"
    return time_aware(
        ranker,
        prior=automatic if args.time_prior == "auto" else make_prior(named, kernel=args.kernel, bandwidth=bandwidth),
        weight=weight,
        evidence=args.time_evidence or "score",
        time_docs=args.time_docs or 50,
        background=background,
        as_of=args.as_of is not None,
        inclusive=args.as_of == "query-time-inclusive",
        feedback=feedback,
    )


def say_time(ranker: Ranker, report: Report, snapshot: Snapshot) -> None:
    """A line on what the prior did, and warnings where it could do nothing."""
    from sdretrieval.ranking.time.wrappers import AutoPrior, TimePrior
    from sdretrieval.ranking.wrapper import wrapper_of

    timed = wrapper_of(ranker, TimePrior) or wrapper_of(ranker, AutoPrior)
    if timed is None:
        return
    if not snapshot.is_dated:
        print("no document of the index has a date: the time prior changed nothing", file=sys.stderr)
    if report.timeless:
        told = f"no recency for topics without a time ({len(report.timeless)}): {few(report.timeless)}"
        print(f"{told}; give them with --topic-times", file=sys.stderr)
    if report.time_chosen:
        print(f"time prior (auto): {chosen_in_words(report.time_chosen.values())}", file=sys.stderr)
    elif report.time_weights:
        mean = sum(report.time_weights) / len(report.time_weights)
        off = sum(weight == 0 for weight in report.time_weights)
        print(
            f"time prior ({timed.prior.name}): weight {mean:.2f} on average, "
            f"none for {off} of {len(report.time_weights)} topics",
            file=sys.stderr,
        )


def chosen_in_words(notes: Iterable[AutoTimeNote]) -> str:
    """How many topics the automatic prior chose what for.

    >>> chosen_in_words([])
    'no topics'
    """
    counts = Counter(note.choice for note in notes)
    words = {
        "none": "nothing for",
        "bursts": "bursts for",
        "nearness": "nearness to the query's time for",
        "both": "both for",
        "feedback": "feedback alone for",
    }
    told = [f"{words[choice]} {counts[choice]}" for choice in words if counts[choice]]
    return ", ".join(told) + f" of {counts.total()} topics" if told else "no topics"


def chosen_for_manifest(report: Report) -> dict[str, str] | None:
    """What the automatic prior chose for each topic, and why."""
    return {qid: str(note) for qid, note in report.time_chosen.items()} or None


def say_leaks(found: Run, ranker: Ranker, topics: list[Topic], snapshot: Snapshot, again) -> None:
    """Rank once more, the other way about the future, and print how the two runs differ."""
    from sdretrieval.ranking.time.leaks import leaks
    from sdretrieval.ranking.time.wrappers import AsOf

    as_of = ranker if isinstance(ranker, AsOf) else AsOf(ranker=ranker)
    if as_of is ranker:
        past, unrestricted = found, again(as_of.ranker)
    else:
        past, unrestricted = again(as_of), found
    print(leaks(past, unrestricted, topics, snapshot, inclusive=as_of.inclusive), file=sys.stderr)


def plays_a_part(args: argparse.Namespace) -> bool:
    """Whether flags ask for more of time than to leave documents out."""
    asked = _asked(args, "time_prior", "background", "feedback_time")
    return asked or bool(args.as_of) or getattr(args, "leak_check", False)


def _asked(args: argparse.Namespace, *names: str) -> bool:
    return any(getattr(args, name) != _OFF[name] for name in names)


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _check(args: argparse.Namespace) -> None:
    for name, needed in _NEEDS.items():
        if getattr(args, name) is not None and not _asked(args, *needed):
            raise ParameterError(
                f"{_flag(name)} says nothing without {' or '.join(map(_flag, needed))}",
                remedy=f"Add {_flag(needed[0])} {_ON[needed[0]]}, for example.",
            )
    found = ["time_weight", "time_evidence"]
    if not _asked(args, "background", "feedback_time"):
        found += ["kernel", "bandwidth"]
    given = [name for name in found if getattr(args, name) not in (None, "auto")]
    if args.time_prior == "auto" and given:
        raise ParameterError(
            f"{_flag(given[0])} is what --time-prior auto finds by itself",
            remedy="Leave it out, or name the prior: --time-prior recency or density.",
        )
    if args.bandwidth == "cv" and args.time_prior != "density":
        raise ParameterError("--bandwidth cv is for --time-prior density", remedy="Pass --bandwidth auto.")


def _bandwidth(args: argparse.Namespace) -> float | str:
    if args.bandwidth in (None, "auto", "cv"):
        return args.bandwidth or "auto"
    from sdretrieval.core.timeline import parse_duration

    value = parse_duration(args.bandwidth)
    if not value > 0:
        raise ParameterError(f"--bandwidth must be positive, got {args.bandwidth}", remedy="As in 7d or 12h, or auto.")
    return value


def _number(flag: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        remedy = "Pass a number such as 0.5, or auto." if flag == "--time-weight" else "Pass a number such as 0.5."
        raise ParameterError(f"{flag} takes a number; got {text!r}", remedy=remedy) from None
