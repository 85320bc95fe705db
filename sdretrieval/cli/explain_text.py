"""An explanation laid out for a terminal: a header, then tables; each says what it leaves out."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

from sdretrieval.cli.bar_tables import bar_table, column, significant, wrapped
from sdretrieval.core.tables import as_much
from sdretrieval.core.times import format_time
from sdretrieval.ranking.explain import DocumentExplanation, Explanation, FeedbackDocument

SHOWN = 10  # documents of the ranking
PERIODS = 12  # of the picture of a time prior
# Label and legend of what is not one word's.
PARTS = {
    "other_words": ("other words", "words outside the model, which weigh as general English does"),
    "smoothing": ("smoothing", "general English's share of the document"),
    "constant": ("constant", "the same for every document"),
    "time": ("time", "what the document's time adds"),
}


def explanation_text(e: Explanation, width: int = 100, top: int = 20) -> str:
    """For a terminal of that width; ``top`` limits every table."""
    sections = [_header(e, width)]
    if e.feedback:
        sections.append(_feedback_table(e, width, top))
    sections.append(_words_table(e, width, top))
    if e.notes.get("time_curve"):
        sections.append(_time_table(e.notes["time_curve"], width))
    sections += [_document_table(e, document, width, top) for document in e.documents]
    if not e.documents:
        sections.append(_ranking_table(e, width, top))
    if len(e.documents) == 2:
        sections.append(_differences_table(e, width, top))
    return "\n\n".join("\n".join(lines) for lines in sections)


def with_texts(e: Explanation, index: Path, top: int = 20) -> Explanation:
    """The same with titles or first words of the documents that are shown, as far as the index stores them.

    Starts the JVM.
    """
    from sdretrieval.index.lucene.contents import stored_document, title_of  # Java only where it is needed

    docids = [document.docid for document in e.documents]
    docids += [document.docid for document in _by_weight(e)[:top]]
    if not e.documents:
        docids += [document.docid for document in e.first_documents[: min(top, SHOWN)]]
    titles = {docid: title_of(stored_document(index, docid) or {}) for docid in dict.fromkeys(docids)}
    return replace(e, texts={docid: title for docid, title in titles.items() if title})


def _header(e: Explanation, width: int) -> list[str]:
    settings = "  ".join(f"{name}={_short(e.settings[name])}" for name in e.changed_settings)
    if not e.notes.get("replayed"):
        settings = f"{settings}  (else its defaults)" if settings else "with its defaults"
    learnt = "nothing: replayed from a saved expansion" if e.notes.get("replayed") else ""
    if e.feedback:
        given = "of the given run" if e.notes.get("reranked") else "of the first pass"
        judged = len(e.feedback) - e.notes.get("unjudged", 0) if e.judged else 0
        parts = [f"{judged} documents judged relevant"] if judged else []
        parts += [f"{len(e.feedback) - judged} documents {given}"] if len(e.feedback) > judged else []
        parts += ["the query as one more"] if e.settings.get("query_weight") else []
        learnt = ", ".join(parts)
    labelled = {
        f"Query {e.qid}": " ".join(e.query.split()),
        "words": "  ".join(e.query_words),
        "not in the index": "  ".join(dict.fromkeys(e.unknown_words)),
        "model": f"{e.model}  {settings}".rstrip(),
        "ranked by": e.weighting + (f"  background {significant(e.background)}" if e.background else ""),
        "learnt from": learnt,
        "note": str(e.notes.get("note", "")),
        "neighbours": _neighbours(e.notes),
        "time prior": str(e.notes.get("time", "")),
        "EM": _em(e.notes),
        **_blend(e.notes),
    }
    margin = max(len(label) for label, text in labelled.items() if text) + 3
    return [
        textwrap.fill(text, width, initial_indent=label.ljust(margin), subsequent_indent=" " * margin)
        for label, text in labelled.items()
        if text
    ]


def _neighbours(notes: Mapping[str, Any]) -> str:
    pairs = notes.get("neighbours")
    return (
        f"{'  '.join(map(repr, pairs))}: count besides where they stand together, in the first documents"
        if pairs
        else ""
    )


def _em(notes: Mapping[str, Any]) -> str:
    if notes.get("iterations", 1) == 1:
        return ""
    state, bounds = "converged" if notes.get("converged") else "not converged", notes.get("bounds")
    climb = f"; bound {significant(bounds[0])} → {significant(bounds[-1])}" if bounds else ""
    return f"{notes['iterations']} iterations, {state}{climb}"


def _blend(notes: Mapping[str, Any]) -> dict[str, str]:
    """Each part of a blend with its words, and how far feedback held back, and why."""
    if not notes.get("parts"):
        return {}
    query, r, best = notes["query_weight"], notes["feedback_weight"], notes["best"]
    depths = " and ".join(", ".join(map(str, notes["depths"])).rsplit(", ", 1))
    told = {
        "held back": f"the query as typed has {query:.2f} of the weight, words learnt from {depths} documents "
        f"{1 - query:.2f}: at its best a feedback document scores {significant(best['query'])} by the query's words, "
        f"{significant(best['feedback'])} by the learnt ones, which {_how_much(r, len(notes['depths']))}"
    }
    for name, words in notes["parts"].items():
        told[f"part {name}"] = "  ".join(f"{word} {weight:.3f}" for word, weight in words.items())
    return told


def _how_much(r: float, depths: int) -> str:
    if depths == 1:
        return f"count {as_much(r)}, as documents are judged relevant"
    return f"may count {as_much(r)}, and do where all estimates agree"


def _by_weight(e: Explanation) -> list[FeedbackDocument]:
    return sorted(e.feedback, key=lambda d: -d.weight)


def _feedback_table(e: Explanation, width: int, top: int) -> list[str]:
    shown = _by_weight(e)[:top]
    docids, weights = [d.docid for d in shown], [d.weight for d in shown]
    columns = [
        ("document", docids),
        ("first rank", [_rank(d.first_rank) for d in shown]),
        column("first score", [d.first_score for d in shown]),
        ("final rank", [_rank(d.rank) for d in shown]),
        column("weight", weights),
    ]
    lines = ["Feedback documents", *_with_texts(e, bar_table(columns, weights, width), docids, width)]
    left = len(e.feedback) - len(shown)
    if left:
        lines.append(f"  … {left} more, with {significant(max(1.0 - sum(weights), 0.0))} of the weight")
    return lines


def _words_table(e: Explanation, width: int, top: int) -> list[str]:
    shown, rest = e.words[:top], e.words[top:]
    contributions = [w.contribution for w in shown]
    columns = [
        ("word", [_mark(w.word, w.in_query) for w in shown]),
        column("weight", [w.weight for w in shown]),
        ("in collection", [f"{w.collection:.6f}" for w in shown]),
        ("lift", [_times(w.lift) for w in shown]),
        column("contribution", contributions),
    ]
    what = "the feedback documents" if e.feedback else "the first documents"
    lines = [f"Words of the model, by what they bring to the score of {what}"]
    lines += bar_table(columns, contributions, width)
    if rest:
        lines.append(f"  … {len(rest)} more words, bringing {significant(sum(w.contribution for w in rest))}")
    return lines + wrapped("* in the query; lift: share of the model's weight / share in the collection", width)


def _time_table(curve: Sequence[tuple[int, float]], width: int) -> list[str]:
    """What the time of a document adds, by periods with the same number of documents."""
    parts = [curve[i * len(curve) // PERIODS : (i + 1) * len(curve) // PERIODS] for i in range(PERIODS)]
    told = [(part, max((rho for _, rho in part), key=abs)) for part in parts if part]
    alike = [list(group) for _, group in groupby(told, key=lambda item: f"{item[1]:.4f}")]
    parts = [[point for part, _ in group for point in part] for group in alike]
    strongest = [group[0][1] for group in alike]
    columns = [
        ("from", [format_time(part[0][0])[:10] for part in parts]),
        ("until", [format_time(part[-1][0])[:10] for part in parts]),
        column("nats", strongest),
    ]
    lines = ["What a document's time adds, where it adds or takes most", *bar_table(columns, strongest, width)]
    return lines + wrapped("of as many documents each, the first ones and some below; alike ones are joined", width)


def _ranking_table(e: Explanation, width: int, top: int) -> list[str]:
    shown = e.first_documents[: min(top, SHOWN)]
    docids = [d.docid for d in shown]
    columns = [
        ("document", docids),
        ("rank", [f"{rank}" for rank in range(1, len(shown) + 1)]),
        column("score", [d.score for d in shown]),
    ]
    if e.feedback:
        columns.append(("first rank", [_rank(d.first_rank) for d in shown]))
    return [f"First of {e.ranked} documents", *_with_texts(e, bar_table(columns, [], width), docids, width)]


def _document_table(e: Explanation, d: DocumentExplanation, width: int, top: int) -> list[str]:
    words = [word for word in d.words if word.count]
    shown, rest = words[:top], words[top:]
    sums = {f"… {len(rest)} more words": sum(word.contribution for word in rest)} if rest else {}
    sums |= {_label(name): value for name, value in d.parts.items()} | {"score": d.score}
    contributions = [word.contribution for word in shown]
    columns = [
        ("word", [_mark(w.word, w.in_query) for w in shown] + [f"  {label}" for label in sums]),
        ("count", [f"{w.count}" for w in shown]),
        column("weight", [w.weight for w in shown]),
        column("evidence", [w.evidence for w in shown]),
        column("contribution", [*contributions, *sums.values()]),
    ]
    lines = textwrap.fill(f"Document {d.docid}: {_standing(e, d)}", width, subsequent_indent="  ").splitlines()
    lines += _text_below(e, d.docid, "  ", width)
    lines += _ruled(bar_table(columns, contributions, width))
    lines += wrapped("; ".join(": ".join(PARTS[name]) for name in d.parts if name in PARTS), width)
    if d.absent:
        lines += wrapped("the model also looks for, and it does not have: " + ", ".join(d.absent), width)
    return lines


def _differences_table(e: Explanation, width: int, top: int) -> list[str]:
    a, b = e.documents
    shown, rest = e.differences()[:top], e.differences()[top:]
    sums = {}
    if rest:
        sums[f"… {len(rest)} more words"] = sum(c.contribution_a for c in rest), sum(c.contribution_b for c in rest)
    for name in dict.fromkeys([*a.parts, *b.parts]):
        sums[_label(name)] = a.parts.get(name, 0.0), b.parts.get(name, 0.0)
    sums["score"] = a.score, b.score
    pairs = [(c.contribution_a, c.contribution_b) for c in shown] + list(sums.values())
    # One column after all, so that A, B and their difference have the same decimals.
    head, cells = column("brings", [number for x, y in pairs for number in (x, y, x - y)])
    columns = [
        ("word", [*(c.word for c in shown), *sums]),
        ("count A", [f"{c.count_a}" for c in shown]),
        ("count B", [f"{c.count_b}" for c in shown]),
        (f"{head} A", cells[::3]),
        (f"{head} B", cells[1::3]),
        ("A - B", cells[2::3]),
    ]
    lines = _ruled(bar_table(columns, [c.difference for c in shown], width))
    return [f"A = {a.docid} against B = {b.docid}, largest differences first", *lines]


def _ruled(lines: list[str]) -> list[str]:
    """With a line above the sum in the last row."""
    return [*lines[:-1], "  " + "─" * (len(lines[-1]) - 2), lines[-1]]


def _label(part: str) -> str:
    return PARTS[part][0] if part in PARTS else part.replace("_", " ")


def _standing(e: Explanation, d: DocumentExplanation) -> str:
    if d.rank is not None:
        place = f"rank {d.rank} of {e.ranked}" + (f" (beyond the first {e.hits})" if d.rank > e.hits else "")
    elif e.notes.get("reranked"):
        place = "not among the documents of the run, so without a rank"
    else:
        place = "not ranked, for it has none of the model's words"
    parts = [place, f"score {significant(d.score)}"]
    if d.first_rank is not None:
        parts.append(f"rank {d.first_rank} in the {'given run' if e.notes.get('reranked') else 'first pass'}")
    if d.feedback_weight is not None:
        parts.append(f"feedback with weight {significant(d.feedback_weight)}")
    return ", ".join([*parts, f"{d.length} words long"])


def _with_texts(e: Explanation, lines: list[str], docids: Sequence[str], width: int) -> list[str]:
    """Below each row, what its document is about."""
    out = lines[:1]
    for line, docid in zip(lines[1:], docids, strict=True):
        out += [line, *_text_below(e, docid, "      ", width)]
    return out


def _text_below(e: Explanation, docid: str, indent: str, width: int) -> list[str]:
    return [f"{indent}{e.texts[docid]}"[:width]] if docid in e.texts else []


def _mark(word: str, in_query: bool) -> str:
    return f"{'*' if in_query else ' '} {word}"


def _rank(rank: int | None) -> str:
    return "-" if rank is None else str(rank)


def _times(lift: float) -> str:
    return f"{significant(lift) if abs(lift) < 10 else f'{lift:.0f}'}×"


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
