"""``sdretrieval expansion``: look into files of saved expanded queries, and compare two of them."""

from __future__ import annotations

import argparse
import json
import textwrap
from collections.abc import Mapping, Sequence

from sdretrieval.cli import options
from sdretrieval.cli.explain import terminal_width
from sdretrieval.errors import InputError
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
  sdretrieval search --index indexes/mine --topics topics.tsv --output runs/sd3.txt --save-expansion sd3.jsonl
  sdretrieval expansion show sd3.jsonl --qid 12
  sdretrieval expansion diff sd3.jsonl rm3.jsonl
  sdretrieval expansion diff sd3.jsonl rm3.jsonl --qid 12 --top 30

The files are plain text, one JSON object per topic: change weights, delete or add words, and rank with them
again by `sdretrieval search --expansion sd3.jsonl …`.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    show = actions.add_parser("show", help="the words and feedback documents of each topic")
    show.add_argument("file", metavar="FILE")
    compare = actions.add_parser(
        "diff",
        help="how two files differ, topic by topic",
        description="Without --qid one line per topic; with it, the topic word by word.",
    )
    compare.add_argument("a", metavar="A")
    compare.add_argument("b", metavar="B")
    for action in (show, compare):
        action.add_argument("--qid", action="append", default=[], metavar="ID", help="only this topic; may be repeated")
        action.add_argument(
            "--top",
            type=options.positive,
            default=20,
            metavar="N",
            help="words of a topic (default: %(default)s)",
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
            remedy=f"They have {_some(difference.only_a)} and {_some(difference.only_b)}.",
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
            raise InputError(f"no topic {qid!r} in it", file=file, remedy=f"It has {_some(list(queries))}.")
    return {qid: queries[qid] for qid in qids} if qids else queries


def _some(qids: Sequence[str], n: int = 10) -> str:
    return ", ".join(qids[:n]) + (", …" if len(qids) > n else "")


# -- as text -------------------------------------------------------------------------------------------------


def query_text(query: ExpandedQuery, width: int, top: int) -> str:
    """One expanded query: where it comes from, then its words with bars."""
    from sdretrieval.ranking.explain import bar_table, significant

    lines = [_title(query, width), f"  {_origin(query)}"]
    if query.feedback:
        by_weight = sorted(query.feedback, key=lambda pair: -pair[1])
        shown = ", ".join(f"{docid} {significant(weight)}" for docid, weight in by_weight[:5])
        more = f", and {len(by_weight) - 5} more" if len(by_weight) > 5 else ""
        lines += _wrapped(f"learnt from {shown}{more}", width)
    words = sorted(query.terms.items(), key=lambda pair: (-abs(pair[1]), pair[0]))
    if words:
        rows = [[word, significant(weight)] for word, weight in words[:top]]
        lines.append(bar_table(["word", "weight"], rows, [weight for _, weight in words[:top]], width))
    if len(words) > top:
        lines.append(f"  … {len(words) - top} more words")
    return "\n".join(lines)


def diff_text(difference: ExpansionDiff, a: str, b: str, width: int, top: int) -> str:
    """One line per topic: how alike, and the strongest words that only one has."""
    from sdretrieval.evaluate.tables import text_table

    topics = difference.topics
    header = ["topic", "words A", "words B", "common", "Jaccard", "cosine", f"of top {top}"]
    rows = [
        [
            t.qid, f"{len(t.a.terms)}", f"{len(t.b.terms)}", f"{t.common}",
            f"{t.jaccard:.2f}", f"{t.cosine:.3f}", f"{t.strongest_in_common(top)}",
        ]
        for t in topics
    ]  # fmt: skip
    columns = zip(*((t.jaccard, t.cosine, t.strongest_in_common(top)) for t in topics), strict=True)
    mean = [sum(values) / len(topics) for values in columns]
    rows.append(["mean", "", "", "", f"{mean[0]:.2f}", f"{mean[1]:.3f}", f"{mean[2]:.1f}"])
    lines = text_table(header, rows).splitlines()
    room = (width - max(map(len, lines)) - 4) // 2
    if room >= 12:
        longest = max(map(len, lines))
        heads = [("only in A", "only in B")]
        heads += [(_names(t.only_a, room), _names(t.only_b, room)) for t in topics]
        for i, (left, right) in enumerate(heads):
            lines[i] = f"{lines[i]:<{longest}}  {left:<{room}}  {right}".rstrip()
    top_lines = [
        f"A  {a}: {_origins([t.a for t in topics])}",
        f"B  {b}: {_origins([t.b for t in topics])}",
        "",
    ]
    tail = []
    for name, qids in (("A", difference.only_a), ("B", difference.only_b)):
        if qids:
            tail.append(f"{len(qids)} topics only in {name}: {_some(qids)}")
    return "\n".join([*top_lines, *lines, *tail])


def topic_text(topic: TopicDiff, width: int, top: int) -> str:
    """One topic word by word."""
    from sdretrieval.ranking.explain import bar_table

    lines = [_title(topic.a, width), f"  A  {_origin(topic.a)}", f"  B  {_origin(topic.b)}"]
    alike = (
        f"cosine {topic.cosine:.3f}; {topic.common} words in common (Jaccard {topic.jaccard:.2f}); "
        f"{topic.strongest_in_common(top)} of the {top} strongest"
    )
    lines += _wrapped(alike, width)
    changes = topic.changed[:top]
    if changes:
        rows = [[c.word, f"{100 * c.share_a:.2f}", f"{100 * c.share_b:.2f}", f"{100 * c.change:+.2f}"] for c in changes]
        lines += ["", bar_table(["word", "A %", "B %", "change"], rows, [c.change for c in changes], width)]
        if len(topic.changed) > top:
            lines.append(f"  … {len(topic.changed) - top} more with another weight")
    if topic.unchanged:
        lines.append(f"  {topic.unchanged} words with the same weight in both")
    for name, words in (("A", topic.only_a), ("B", topic.only_b)):
        if words:
            listed = ", ".join(f"{c.word} {100 * abs(c.change):.2g}" for c in words[:top])
            more = f", and {len(words) - top} more" if len(words) > top else ""
            lines += ["", *_wrapped(f"only in {name} (%): {listed}{more}", width)]
    return "\n".join(lines)


def _title(query: ExpandedQuery, width: int) -> str:
    text = " ".join(query.query.split())
    return textwrap.shorten(f"Topic {query.qid}: {text}" if text else f"Topic {query.qid}", width, placeholder=" …")


def _origin(query: ExpandedQuery) -> str:
    from sdretrieval.ranking.explain import significant

    parts = [query.model, f"{len(query.terms)} words", describe_weighting(query.weighting)]
    if query.background:
        parts.append(f"background {significant(query.background)}")
    return ", ".join(part for part in parts if part)


def _origins(queries: Sequence[ExpandedQuery]) -> str:
    kinds = dict.fromkeys(", ".join(p for p in (q.model, describe_weighting(q.weighting)) if p) for q in queries)
    return " / ".join(kinds)


def _names(changes: Sequence[WordChange], room: int) -> str:
    """As many words as there is room for."""
    text = ""
    for change in changes:
        longer = f"{text} {change.word}".strip()
        if len(longer) > room - 2:
            return f"{text} …" if text else f"{change.word[: room - 2]} …"
        text = longer
    return text


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, initial_indent="  ", subsequent_indent="    ")
