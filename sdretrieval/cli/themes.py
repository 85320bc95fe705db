"""``sdretrieval themes``: themes of local contexts, learnt, shown, drawn along a document, and used to cut it.

What it prints and writes calls them topics, and so do its flags.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from sdretrieval.cli.value_types import natural, positive
from sdretrieval.core.errors import InputError, ParameterError

if TYPE_CHECKING:
    import numpy as np

    from sdretrieval.learn.lcsc.model import LocalContextSparseCoding
    from sdretrieval.learn.lcsc.sequences import Sequences

EXAMPLE = """\
examples:
  learn 100 themes of an index (kept beside it, as indexes/news.topics), and list them:
    sdretrieval themes fit --index indexes/news --n-topics 100
    sdretrieval themes show --model indexes/news.topics

  themes along one long document, in the terminal, as a page, and cut into 12 segments:
    sdretrieval themes fit --input article.txt --n-topics 15 --bandwidth 25 --output article.topics
    sdretrieval themes strip --model article.topics --input article.txt
    sdretrieval themes strip --model article.topics --input article.txt --output strip.html --segments 12
    sdretrieval themes segment --model article.topics --input article.txt --segments 12

  documents as weights of themes, one JSON line each, for other programs:
    sdretrieval themes transform --model indexes/news.topics --input more.jsonl --output more.z.jsonl

A document is a sequence of local contexts: the words around each position, weighted by a kernel. A theme is a latent
topic, a distribution over words; a context is a sparse mixture of themes, a document the mean of its contexts' mixtures
(local context sparse coding, Kim et al. 2015).
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    verbs = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    def action(name: str, text: str) -> argparse.ArgumentParser:
        return verbs.add_parser(name, help=text, epilog=EXAMPLE, formatter_class=parser.formatter_class)

    fit = action("fit", "learn themes and save them")
    _add_documents(fit)
    fit.add_argument("--output", metavar="FILE", help="where to save them (default with --index: INDEX.topics)")
    learning = fit.add_argument_group("learning").add_argument
    kernels, losses = ("gaussian", "constant", "triangular"), ("squared", "hellinger")
    settings = [
        learning("--n-topics", dest="n_components", type=int, metavar="K", help="number of themes (default: 100)"),
        learning("--bandwidth", type=float, metavar="WORDS", help="h of the kernel (default: 1)"),
        learning("--kernel", choices=kernels, help="default: gaussian"),
        learning("--loss", choices=losses, help="default: squared"),
        learning("--sparsity", type=float, metavar="λ", help="default: 0.01"),
        learning("--coupling", type=float, metavar="ρ", help="default: 0.0001"),
        learning("--steps", dest="max_iter", type=int, metavar="N", help="dictionary steps at most (default: 10)"),
        learning("--batch", dest="batch_size", type=int, metavar="DOCS", help="learn from so many documents at a time"),
        learning("--min-df", type=int, metavar="N", help="only words of N documents or more"),
        learning("--max-df", type=float, metavar="SHARE", help="only words of at most that share"),
        learning("--vocabulary", dest="max_features", type=int, metavar="N", help="only the N most frequent words"),
        learning("--threads", dest="n_jobs", type=int, metavar="N", help="default: all processors"),
        learning("--seed", dest="random_state", type=natural, default=0, help="default: %(default)s"),
    ]
    fit.set_defaults(settings=[setting.dest for setting in settings])  # named as the model's own parameters

    show = action("show", "list themes by their heaviest words")
    _add_model(show)
    show.add_argument("--words", type=positive, default=10, metavar="N", help="words per theme (default: %(default)s)")
    show.add_argument("--topics", type=int, nargs="+", metavar="K", help="only these themes")
    show.add_argument("--json", action="store_true", help="as JSON, with weights")

    strip = action("strip", "draw themes along a document")
    segment = action("segment", "cut a document where its subject changes")
    transform = action("transform", "documents as weights of themes")
    for sub in (strip, segment, transform):
        _add_model(sub)
        _add_documents(sub)
    for sub in (strip, segment):
        sub.add_argument("--docid", metavar="ID", help="which document (default: the only one)")
        sub.add_argument("--segments", type=int, metavar="N", help="cut into N segments")
    strip.add_argument("--output", metavar="FILE.html|FILE.png", help="write a page or a picture")
    strip.add_argument("--width", type=positive, default=72, metavar="N", help="characters (default: %(default)s)")
    strip.add_argument("--most", type=positive, default=15, metavar="N", help="themes shown (default: %(default)s)")
    segment.add_argument("--json", action="store_true", help="as JSON")
    transform.add_argument("--output", required=True, metavar="FILE", help="one JSON object per document and line")


def _add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", required=True, metavar="FILE", help="what `themes fit` saved")


def _add_documents(parser: argparse.ArgumentParser) -> None:
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--index", metavar="DIR", help="a Lucene index that stores its texts")
    source.add_argument("--input", nargs="+", metavar="FILE", help="corpus files, as `sdretrieval index` reads them")


def run(args: argparse.Namespace) -> int:
    actions = {"fit": _fit, "show": _show, "strip": _strip, "segment": _segment, "transform": _transform}
    actions[args.action](args)
    return 0


def _documents(args: argparse.Namespace) -> Sequences:
    if args.index is not None:
        from sdretrieval.index.snapshot import open_snapshot
        from sdretrieval.learn.lcsc.passage_ranking import kept_sequences

        return kept_sequences(open_snapshot(args.index))
    from sdretrieval.learn.lcsc.sequences import corpus_sequences

    return corpus_sequences(args.input)


def _fit(args: argparse.Namespace) -> None:
    from sdretrieval.core.files import check_writable
    from sdretrieval.learn.lcsc.model import LocalContextSparseCoding
    from sdretrieval.learn.lcsc.passage_ranking import topics_file

    if args.output is None and args.index is None:
        raise ParameterError("--output is needed with --input", remedy="Add --output FILE.")
    output = Path(args.output) if args.output is not None else topics_file(Path(args.index))
    check_writable(output)
    given = {name: value for name in args.settings if (value := getattr(args, name)) is not None}
    model = LocalContextSparseCoding(**given)
    model.check_parameters()  # before the documents are read
    documents = _documents(args)
    model.fit(documents)
    model.save(output)
    per_word = [value / max(model.known_words(documents).n_tokens, 1) for value in model.objective_]
    print(
        f"{model.n_components} themes of {len(documents):,} documents, {len(model.vocabulary_):,} words; objective per "
        f"position {per_word[0]:.4g} → {per_word[-1]:.4g} in {model.n_iter_} steps; saved as {output}",
        file=sys.stderr,
    )


def _load(args: argparse.Namespace) -> LocalContextSparseCoding:
    from sdretrieval.learn.lcsc.model import LocalContextSparseCoding

    return LocalContextSparseCoding.load(args.model)


def _labels(model: LocalContextSparseCoding, n: int = 8) -> list[str]:
    return [" ".join(word for word, _ in model.top_words(k, n)) for k in range(model.n_components)]


def _print_json(value: object) -> None:
    print(json.dumps(value, ensure_ascii=False))


def _show(args: argparse.Namespace) -> None:
    model = _load(args)
    themes = range(model.n_components) if args.topics is None else args.topics
    found = {k: model.top_words(k, args.words) for k in themes}
    if args.json:
        _print_json([{"topic": k, "words": dict(words)} for k, words in found.items()])
        return
    for k, words in found.items():
        print(f"{k:>5}  {' '.join(word for word, _ in words)}")


def _one(args: argparse.Namespace, model: LocalContextSparseCoding) -> tuple[str, Sequences, np.ndarray]:
    """The document that was asked for, in the model's words, and the shares of themes along it."""
    from sdretrieval.learn.lcsc.segmentation import theme_shares

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
        raise InputError(
            f"document {documents.docids[row]!r} has no word that the themes know", remedy="Choose another --docid."
        )
    return documents.docids[row], known, theme_shares(model.code(known).codes)


def _strip(args: argparse.Namespace) -> None:
    from sdretrieval.core.files import atomic_writer
    from sdretrieval.learn.lcsc import pictures
    from sdretrieval.learn.lcsc.segmentation import segment

    kind = None if args.output is None else Path(args.output).suffix.lower()
    if kind not in (None, ".html", ".png"):
        raise ParameterError(f"--output {args.output}: the name must end in .html or .png")
    model = _load(args)
    docid, _, shares = _one(args, model)
    cuts = segment(shares, n_segments=args.segments) if args.segments is not None else []
    labels = _labels(model)
    if kind is None:
        print(pictures.terminal_strip(shares, labels, width=args.width, most=args.most, boundaries=cuts))
    elif kind == ".html":
        with atomic_writer(args.output) as out:
            out.write(pictures.html_strip(shares, labels, title=docid, most=args.most, boundaries=cuts))
    else:
        pictures.png_strips(args.output, [(docid, shares)], labels=labels, boundaries=cuts, most=args.most)


def _segment(args: argparse.Namespace) -> None:
    from sdretrieval.learn.lcsc.segmentation import segment, spans

    model = _load(args)
    docid, document, shares = _one(args, model)
    words, labels = document.words(0), _labels(model, 6)
    found = []
    for first, last in spans(segment(shares, n_segments=args.segments), len(words)):
        theme = int(shares[first:last].sum(axis=0).argmax())
        share = round(float(shares[first:last, theme].mean()), 4)
        begins = " ".join(words[first : first + 6])
        part = {"first": first, "last": last - 1, "begins": begins, "topic": theme, "share": share}
        found.append({**part, "words": labels[theme]})
    if args.json:
        _print_json({"docid": docid, "words": len(words), "segments": found})
        return
    for part in found:
        print(f"{part['first']:>7} - {part['last']:<7} topic {part['topic']:<5} {part['words']}  [{part['begins']} …]")


def _transform(args: argparse.Namespace) -> None:
    from sdretrieval.core.files import atomic_writer, check_writable

    check_writable(args.output)
    model = _load(args)
    documents = _documents(args)
    z = model.transform(documents)
    z.sort_indices()
    with atomic_writer(args.output) as out:
        for docid, row in zip(documents.docids, z, strict=True):
            weights = zip(row.indices.tolist(), row.data.tolist(), strict=True)
            line = {"id": docid, "topics": {str(theme): round(weight, 8) for theme, weight in weights}}
            out.write(json.dumps(line, ensure_ascii=False) + "\n")
    print(f"{len(documents):,} documents as weights of {model.n_components} themes: {args.output}", file=sys.stderr)
