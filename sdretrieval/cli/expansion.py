"""``sdretrieval expansion``: look into files of saved expanded queries, and compare two of them."""

from __future__ import annotations

import argparse
import json
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from sdretrieval.cli import options
from sdretrieval.cli.bar_tables import bar_table, significant, terminal_width, wrapped
from sdretrieval.core.errors import InputError, few
from sdretrieval.core.tables import text_table
from sdretrieval.ranking.expansion import (
    ExpandedQuery,
    ExpansionDiff,
    TopicDiff,
    WordChange,
    describe_weighting,
    diff,
    read_expanded_queries,
)

EXAMPLE = """\
examples:
  sdretrieval search --index indexes/mine --topics topics.tsv --model sd3 \\
      --output runs/sd3.txt --save-expansion sd3.jsonl
  sdretrieval expansion show sd3.jsonl --qid 12
  sdretrieval expansion diff sd3.jsonl rm3.jsonl
  sdretrieval expansion diff sd3.jsonl rm3.jsonl --qid 12 --top 30

The files are plain text, one JSON object per topic: change weights, delete or add words, and rank with them
again by `sdretrieval search --expansion sd3.jsonl …`.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    how: Any = {"epilog": EXAMPLE, "formatter_class": parser.formatter_class}
    show = actions.add_parser("show", help="the words and feedback documents of each topic", **how)
    show.add_argument("file", metavar="FILE", help="what --save-expansion wrote")
    how["description"] = "Without --qid one line per topic; with it, the topic word by word."
    compare = actions.add_parser("diff", help="how two files differ, topic by topic", **how)
    compare.add_argument("a", metavar="A", help="what --save-expansion wrote")
    compare.add_argument("b", metavar="B", help="the same of another model, or edited")
    for action in (show, compare):
        action.add_argument("--qid", action="append", default=[], metavar="ID", help="only this topic; may be repeated")
        action.add_argument(
            "--top", type=options.positive, default=20, metavar="N", help="words of a topic (default: %(default)s)"
        )
        action.add_argument("--json", action="store_true", help="for scripts; one line per topic, all words")


def run(args: argparse.Namespace) -> int:
    width = terminal_width()
    if args.action == "show":
        queries = _chosen(read_expanded_queries(args.file), args.qid, args.file)
        if args.json:
            for query in queries.values():
                print(json.dumps(query.to_json(), ensure_ascii=False))
        else:
            print("\n\n".join(query_text(query, width, args.top) for query in queries.values()))
        return 0
    a = _chosen(read_expanded_queries(args.a), args.qid, args.a)
    b = _chosen(read_expanded_queries(args.b), args.qid, args.b)
    difference = diff(a, b)
    if not difference.topics:
        raise InputError(
            f"no topic in common with {args.b}",
            file=args.a,
            remedy=f"They have {few(difference.only_a)} and {few(difference.only_b)}.",
        )
    if args.json:
        for topic in difference.topics:
            print(json.dumps(topic.to_json(), ensure_ascii=False))
    elif args.qid or len(difference.topics) == 1:
        print("\n\n".join(topic_text(topic, width, args.top) for topic in difference.topics))
    else:
        print(diff_text(difference, args.a, args.b, width, args.top))
    return 0


def _chosen(queries: Mapping[str, ExpandedQuery], qids: Sequence[str], file: str) -> Mapping[str, ExpandedQuery]:
    for qid in qids:
        if qid not in queries:
            raise InputError(f"no topic {qid!r} in it", file=file, remedy=f"It has {few(queries)}.")
    return {qid: queries[qid] for qid in qids} if qids else queries


# -- as text -------------------------------------------------------------------------------------------------


def query_text(query: ExpandedQuery, width: int, top: int) -> str:
    """One expanded query: where it comes from, then its words with bars."""
    lines = [_title(query, width), f"  {_origin(query)}"]
    if query.feedback:
        by_weight = sorted(query.feedback, key=lambda pair: -pair[1])
        shown = ", ".join(f"{docid} {significant(weight)}" for docid, weight in by_weight[:5])
        lines += wrapped(f"learnt from {shown}{_and_more(by_weight, 5)}", width)
    words = sorted(query.terms.items(), key=lambda pair: (-abs(pair[1]), pair[0]))
    if words:
        weights = [weight for _, weight in words[:top]]
        columns = [("word", [word for word, _ in words[:top]]), ("weight", [significant(w) for w in weights])]
        lines += bar_table(columns, weights, width)
    if len(words) > top:
        lines.append(f"  … {len(words) - top} more words")
    return "\n".join(lines)


def diff_text(difference: ExpansionDiff, a: str, b: str, width: int, top: int) -> str:
    """One line per topic: how alike, and the strongest words that only one has."""
    topics = difference.topics
    header = ["topic", "words A", "words B", "common", "Jaccard", "cosine", f"of top {top}"]
    alike = [(t.jaccard, t.cosine, t.strongest_in_common(top)) for t in topics]
    rows = [
        [t.qid, f"{len(t.a.terms)}", f"{len(t.b.terms)}", f"{t.common}", f"{j:.2f}", f"{c:.3f}", f"{n}"]
        for t, (j, c, n) in zip(topics, alike, strict=True)
    ]
    jaccard, cosine, strongest = (sum(values) / len(topics) for values in zip(*alike, strict=True))
    rows.append(["mean", "", "", "", f"{jaccard:.2f}", f"{cosine:.3f}", f"{strongest:.1f}"])
    lines = text_table(header, rows).splitlines()
    longest = max(map(len, lines))
    room = (width - longest - 4) // 2
    if room >= 12:
        heads = [("only in A", "only in B")]
        heads += [(_names(t.only_a, room), _names(t.only_b, room)) for t in topics]
        for i, (left, right) in enumerate(heads):
            lines[i] = f"{lines[i]:<{longest}}  {left:<{room}}  {right}".rstrip()
    lines[:0] = [f"A  {a}: {_origins([t.a for t in topics])}", f"B  {b}: {_origins([t.b for t in topics])}", ""]
    for name, qids in (("A", difference.only_a), ("B", difference.only_b)):
        if qids:
            lines.append(f"{len(qids)} topics only in {name}: {few(qids)}")
    return "\n".join(lines)


def topic_text(topic: TopicDiff, width: int, top: int) -> str:
    """One topic word by word."""
    lines = [_title(topic.a, width), f"  A  {_origin(topic.a)}", f"  B  {_origin(topic.b)}"]
    alike = (
        f"cosine {topic.cosine:.3f}; {topic.common} words in common (Jaccard {topic.jaccard:.2f}); "
        f"{topic.strongest_in_common(top)} of the {top} strongest"
    )
    lines += wrapped(alike, width)
    shown = topic.changed[:top]
    if shown:
        columns = [
            ("word", [c.word for c in shown]),
            ("A %", [f"{100 * c.share_a:.2f}" for c in shown]),
            ("B %", [f"{100 * c.share_b:.2f}" for c in shown]),
            ("change", [f"{100 * c.change:+.2f}" for c in shown]),
        ]
        lines += ["", *bar_table(columns, [c.change for c in shown], width)]
        if len(topic.changed) > top:
            lines.append(f"  … {len(topic.changed) - top} more with another weight")
    if topic.unchanged:
        lines.append(f"  {topic.unchanged} words with the same weight in both")
    for name, words in (("A", topic.only_a), ("B", topic.only_b)):
        if words:
            listed = ", ".join(f"{c.word} {100 * abs(c.change):.2g}" for c in words[:top])
            lines += ["", *wrapped(f"only in {name} (%): {listed}{_and_more(words, top)}", width)]
    return "\n".join(lines)


def _and_more(items: Sequence, shown: int) -> str:
    return f", and {len(items) - shown} more" if len(items) > shown else ""


def _title(query: ExpandedQuery, width: int) -> str:
    text = " ".join(query.query.split())
    return textwrap.shorten(f"Topic {query.qid}: {text}" if text else f"Topic {query.qid}", width, placeholder=" …")


def _origin(query: ExpandedQuery) -> str:
    parts = [query.model, f"{len(query.terms)} words", describe_weighting(query.weighting)]
    if query.background:
        parts.append(f"background {significant(query.background)}")
    return ", ".join(filter(None, parts))


def _origins(queries: Sequence[ExpandedQuery]) -> str:
    kinds = [", ".join(filter(None, (q.model, describe_weighting(q.weighting)))) for q in queries]
    return " / ".join(dict.fromkeys(kinds))


def _names(changes: Sequence[WordChange], room: int) -> str:
    """As many words as there is room for."""
    text = ""
    for change in changes:
        longer = f"{text} {change.word}".strip()
        if len(longer) > room - 2:
            return f"{text} …" if text else f"{change.word[: room - 2]} …"
        text = longer
    return text
