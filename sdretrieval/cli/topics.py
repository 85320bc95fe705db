"""``sdretrieval topics``: topics of local contexts, learnt, shown, drawn along a document, and used to cut it."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from sdretrieval.errors import InputError, ParameterError

if TYPE_CHECKING:
    from sdretrieval.topics.model import LocalContextSparseCoding
    from sdretrieval.topics.sequences import Sequences

EXAMPLE = """\
examples:
  learn 100 topics of an index (kept beside it, as indexes/news.topics), and list them:
    sdretrieval topics fit --index indexes/news --n-topics 100
    sdretrieval topics show --model indexes/news.topics

  topics along one long document, in the terminal, as a page, and cut into 12 segments:
    sdretrieval topics fit --input article.txt --n-topics 15 --bandwidth 25 --output article.topics
    sdretrieval topics strip --model article.topics --input article.txt
    sdretrieval topics strip --model article.topics --input article.txt --output strip.html --segments 12
    sdretrieval topics segment --model article.topics --input article.txt --segments 12

  documents as topic weights, one JSON line each, for other programs:
    sdretrieval topics transform --model indexes/news.topics --input more.jsonl --output more.z.jsonl

A document is a sequence of local contexts: the words around each position, weighted by a kernel. A topic is a
distribution over words; a context is a sparse mixture of topics, a document the mean of its contexts' mixtures
(local context sparse coding, Kim et al. 2015).
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    verbs = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    fit = verbs.add_parser(
        "fit", help="learn topics and save them", epilog=EXAMPLE, formatter_class=parser.formatter_class
    )
    _add_documents(fit)
    fit.add_argument(
        "--output", metavar="FILE", help="where to save them (default with --index: INDEX.topics)"
    )
    fit.add_argument("--n-topics", type=int, default=100, metavar="K", help="default: %(default)s")
    fit.add_argument(
        "--bandwidth", type=float, default=1.0, metavar="WORDS", help="h of the kernel (default: 1)"
    )
    fit.add_argument("--kernel", choices=("gaussian", "constant", "triangular"), default="gaussian")
    fit.add_argument("--loss", choices=("squared", "hellinger"), default="squared")
    fit.add_argument("--sparsity", type=float, default=1e-2, metavar="λ", help="default: %(default)s")
    fit.add_argument("--coupling", type=float, default=1e-4, metavar="ρ", help="default: %(default)s")
    fit.add_argument(
        "--steps", type=int, default=10, metavar="N", help="dictionary steps at most (default: 10)"
    )
    fit.add_argument("--batch", type=int, metavar="DOCS", help="learn from so many documents at a time")
    fit.add_argument("--min-df", type=int, default=1, metavar="N", help="only words of N documents or more")
    fit.add_argument(
        "--max-df", type=float, default=1.0, metavar="SHARE", help="only words of at most that share"
    )
    fit.add_argument("--vocabulary", type=int, metavar="N", help="only the N most frequent words")
    fit.add_argument("--threads", type=int, default=None, metavar="N", help="default: all processors")
    fit.add_argument("--seed", type=int, default=0, help="default: %(default)s")

    show = verbs.add_parser("show", help="list topics by their heaviest words")
    _add_model(show)
    show.add_argument(
        "--words", type=int, default=10, metavar="N", help="words per topic (default: %(default)s)"
    )
    show.add_argument("--topics", type=int, nargs="+", metavar="K", help="only these")
    show.add_argument("--json", action="store_true", help="as JSON, with weights")

    for name, text in (
        ("strip", "draw topics along a document"),
        ("segment", "cut a document where its subject changes"),
        ("transform", "documents as topic weights"),
    ):
        sub = verbs.add_parser(name, help=text)
        _add_model(sub)
        _add_documents(sub)
        if name != "transform":
            sub.add_argument("--docid", metavar="ID", help="which document (default: the only one)")
            sub.add_argument("--segments", type=int, metavar="N", help="cut into N segments")
        if name == "strip":
            sub.add_argument("--output", metavar="FILE.html|FILE.png", help="write a page or a picture")
            sub.add_argument(
                "--width", type=int, default=72, metavar="N", help="characters (default: %(default)s)"
            )
            sub.add_argument(
                "--most", type=int, default=15, metavar="N", help="topics shown (default: %(default)s)"
            )
        elif name == "segment":
            sub.add_argument("--json", action="store_true", help="as JSON")
        else:
            sub.add_argument(
                "--output", required=True, metavar="FILE", help="one JSON object per document and line"
            )


def _add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", required=True, metavar="FILE", help="what `topics fit` saved")


def _add_documents(parser: argparse.ArgumentParser) -> None:
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--index", metavar="DIR", help="a Lucene index that stores its texts")
    source.add_argument(
        "--input", nargs="+", metavar="FILE", help="corpus files, as `sdretrieval index` reads them"
    )


def run(args: argparse.Namespace) -> int:
    actions = {"fit": _fit, "show": _show, "strip": _strip, "segment": _segment, "transform": _transform}
    return actions[args.action](args)


def _documents(args: argparse.Namespace) -> Sequences:
    if args.index is not None:
        from sdretrieval.snapshot import open_snapshot
        from sdretrieval.topics.ranking import kept_sequences

        return kept_sequences(open_snapshot(args.index))
    from sdretrieval.topics.sequences import corpus_sequences

    return corpus_sequences(args.input)


def _fit(args: argparse.Namespace) -> int:
    from sdretrieval.files import check_writable
    from sdretrieval.topics.ranking import topics_file

    if args.output is None and args.index is None:
        raise ParameterError("--output is needed with --input", remedy="Add --output FILE.")
    output = Path(args.output) if args.output is not None else topics_file(Path(args.index))
    check_writable(output)
    from sdretrieval.topics.model import LocalContextSparseCoding

    model = LocalContextSparseCoding(
        args.n_topics, bandwidth=args.bandwidth, kernel=args.kernel, loss=args.loss, sparsity=args.sparsity,
        coupling=args.coupling, max_iter=args.steps, batch_size=args.batch, min_df=args.min_df, max_df=args.max_df,
        max_features=args.vocabulary, n_jobs=args.threads, random_state=args.seed,
    )  # fmt: skip
    model._check()  # before the documents are read
    documents = _documents(args)
    model.fit(documents)
    model.save(output)
    per_word = [value / max(model.known_words(documents).n_tokens, 1) for value in model.objective_]
    print(
        f"{args.n_topics} topics of {len(documents):,} documents, {len(model.vocabulary_):,} words; objective per "
        f"position {per_word[0]:.4g} → {per_word[-1]:.4g} in {model.n_iter_} steps; saved as {output}",
        file=sys.stderr,
    )
    return 0


def _load(args: argparse.Namespace) -> LocalContextSparseCoding:
    from sdretrieval.topics.model import LocalContextSparseCoding

    return LocalContextSparseCoding.load(args.model)


def _labels(model: LocalContextSparseCoding, n: int = 8) -> list[str]:
    return [" ".join(word for word, _ in model.top_words(k, n)) for k in range(model.n_components)]


def _show(args: argparse.Namespace) -> int:
    model = _load(args)
    topics = range(model.n_components) if args.topics is None else args.topics
    if args.words < 1:
        raise ParameterError(f"--words must be 1 or more, got {args.words}")
    found = {k: model.top_words(k, args.words) for k in topics}
    if args.json:
        json.dump(
            [{"topic": k, "words": dict(words)} for k, words in found.items()], sys.stdout, ensure_ascii=False
        )
        print()
        return 0
    for k, words in found.items():
        print(f"{k:>5}  {' '.join(word for word, _ in words)}")
    return 0


def _one(args: argparse.Namespace, model: LocalContextSparseCoding) -> tuple[str, Sequences]:
    """The document that was asked for, in the model's words."""
    documents = _documents(args)
    if args.docid is not None:
        if args.docid not in documents.docids:
            raise InputError(f"no document {args.docid!r} among {len(documents)}", remedy="Check --docid.")
        row = documents.docids.index(args.docid)
    elif len(documents) == 1:
        row = 0
    else:
        raise ParameterError(f"there are {len(documents)} documents", remedy="Name one with --docid.")
    known = model.known_words(documents.select([row]))
    if not known.n_tokens:
        raise InputError(f"document {documents.docids[row]!r} has no word that the topics know")
    return documents.docids[row], known


def _strip(args: argparse.Namespace) -> int:
    from sdretrieval.files import atomic_writer
    from sdretrieval.topics import pictures
    from sdretrieval.topics.segmentation import segment, topic_shares

    kind = None if args.output is None else Path(args.output).suffix.lower()
    if kind not in (None, ".html", ".png"):
        raise ParameterError(f"--output {args.output}: the name must end in .html or .png")
    for name, value in (("--width", args.width), ("--most", args.most)):
        if value < 1:
            raise ParameterError(f"{name} must be 1 or more, got {value}")
    model = _load(args)
    docid, document = _one(args, model)
    shares = topic_shares(model.code(document).codes)
    cuts = segment(shares, n_segments=args.segments) if args.segments is not None else []
    labels = _labels(model)
    if kind is None:
        print(pictures.terminal_strip(shares, labels, width=args.width, most=args.most, boundaries=cuts))
    elif kind == ".html":
        with atomic_writer(args.output) as out:
            out.write(pictures.html_strip(shares, labels, title=docid, most=args.most, boundaries=cuts))
    else:
        pictures.png_strips(args.output, [(docid, shares)], labels=labels, boundaries=cuts, most=args.most)
    return 0


def _segment(args: argparse.Namespace) -> int:
    from sdretrieval.topics.segmentation import segment, spans, topic_shares

    model = _load(args)
    docid, document = _one(args, model)
    shares = topic_shares(model.code(document).codes)
    words, labels = document.words(0), _labels(model, 6)
    found = []
    for first, last in spans(segment(shares, n_segments=args.segments), len(words)):
        topic = int(shares[first:last].sum(axis=0).argmax())
        found.append({
            "first": first, "last": last - 1, "begins": " ".join(words[first : first + 6]), "topic": topic,
            "share": round(float(shares[first:last, topic].mean()), 4), "words": labels[topic],
        })  # fmt: skip
    if args.json:
        json.dump({"docid": docid, "words": len(words), "segments": found}, sys.stdout, ensure_ascii=False)
        print()
        return 0
    for part in found:
        print(
            f"{part['first']:>7} - {part['last']:<7} topic {part['topic']:<5} {part['words']}  [{part['begins']} …]"
        )
    return 0


def _transform(args: argparse.Namespace) -> int:
    from sdretrieval.files import atomic_writer, check_writable

    check_writable(args.output)
    model = _load(args)
    documents = _documents(args)
    z = model.transform(documents)
    with atomic_writer(args.output) as out:
        for row, docid in enumerate(documents.docids):
            span = slice(z.indptr[row], z.indptr[row + 1])
            order = sorted(zip(z.indices[span].tolist(), z.data[span].tolist(), strict=True))
            line = {"id": docid, "topics": {str(topic): round(weight, 8) for topic, weight in order}}
            out.write(json.dumps(line, ensure_ascii=False) + "\n")
    print(
        f"{len(documents):,} documents as weights of {model.n_components} topics: {args.output}",
        file=sys.stderr,
    )
    return 0
