"""``sdretrieval classify``: learn labels from labelled documents, label new ones, say how well that works."""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from typing import TYPE_CHECKING, Any

from sdretrieval.errors import InputError, ParameterError

if TYPE_CHECKING:
    import numpy as np

    from sdretrieval.classify.assessment import Assessment
    from sdretrieval.classify.text_classifier import TextClassifier
    from sdretrieval.labelled import LabelledCorpus

EXAMPLE = """\
examples:
  train on JSON lines, {"id": …, "contents": …, "labels": "sport"}, and keep the classifier:
    sdretrieval classify --train docs.jsonl --model sd --save news.sdm

  label new documents with it; or one text:
    sdretrieval classify --load news.sdm --input new.jsonl --output labels.jsonl
    sdretrieval classify --load news.sdm --text "the keeper saved a penalty"

  how good is it? on a test file; on a random fifth; in ten folds; on the documents whose field `split` says test:
    sdretrieval classify --load news.sdm --test test.jsonl
    sdretrieval classify --train docs.jsonl --held-out 0.2
    sdretrieval classify --train docs.jsonl --cv 10 --model svm
    sdretrieval classify --train indexes/news --split-field split --tune

  several labels a document (one classifier for each label against the rest), the ten largest labels:
    sdretrieval classify --train indexes/reuters --label-field topics --multi-label --largest 10 --held-out 0.2

  a classifier that follows the time:
    sdretrieval classify --train mail.jsonl --date-field date --model local-logistic --set bandwidth=30d --cv 5

--train, --test and --input take a Lucene index that stores its documents, or any corpus that `sdretrieval index`
reads. Saved classifiers hold plain arrays, and loading one runs nothing.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    source = parser.add_argument_group("where the classifier comes from").add_mutually_exclusive_group(required=True)
    source.add_argument("--train", metavar="SOURCE", help="learn from these labelled documents")
    source.add_argument("--load", metavar="FILE", help="a classifier kept with --save")
    source.add_argument("--list-models", action="store_true", help="the models and their settings, then stop")

    learning = parser.add_argument_group("learning (--train)")
    learning.add_argument("--model", metavar="NAME", help="see --list-models (default: sd)")
    learning.add_argument(
        "--set", dest="settings", action="append", default=[], metavar="NAME=VALUE",
        help="a setting of the model; may be repeated",
    )  # fmt: skip
    learning.add_argument(
        "--tune", action="store_true", help="choose the settings on a fifth of the training documents"
    )
    learning.add_argument("--multi-label", action="store_true", help="a document may bear several labels")
    learning.add_argument("--labels", nargs="+", metavar="LABEL", help="learn these alone")
    learning.add_argument("--largest", type=int, metavar="N", help="learn the N labels with most documents alone")
    learning.add_argument("--min-df", type=int, default=1, metavar="N", help="leave out words in fewer documents")
    learning.add_argument("--save", metavar="FILE", help="keep the classifier")

    doing = parser.add_argument_group("what to do with it")
    doing.add_argument("--input", metavar="SOURCE", help="label these documents")
    doing.add_argument("--text", help="label this text")
    doing.add_argument("--output", metavar="FILE", help="labels as JSON lines, or .tsv (default: to the screen)")
    doing.add_argument("--test", metavar="SOURCE", help="measure on these labelled documents")
    doing.add_argument("--held-out", type=float, metavar="SHARE", help="measure on a random share of --train")
    doing.add_argument(
        "--split-field", metavar="NAME", help="learn where this field of --train says train, measure where test"
    )
    doing.add_argument("--cv", type=int, metavar="K", help="measure in K folds of --train")
    doing.add_argument("--seed", type=int, default=0, help="of random splits (default: 0)")
    doing.add_argument("--confusion", metavar="FILE", help="write the confusion matrix as CSV")
    doing.add_argument("--json", action="store_true", help="print measures as JSON")

    reading = parser.add_argument_group("how to read the documents")
    reading.add_argument(
        "--label-field", metavar="NAME", help="field of the label or labels (default: labels, or the classifier's)"
    )
    reading.add_argument("--label-separator", metavar="CHAR", help="between several labels in one text, as in tables")
    reading.add_argument("--date-field", metavar="NAME", help="field of the date, for models that follow the time")
    reading.add_argument("--date-format", metavar="PATTERN", help="strptime pattern of the dates")
    reading.add_argument("--id-field", metavar="NAME", help="field of the id (default: id)")
    reading.add_argument(
        "--contents-field", metavar="NAME", action="append", default=[],
        help="field of the text (default: contents); repeat it to join several",
    )  # fmt: skip
    reading.add_argument("--format", default="auto", metavar="NAME", help="as in `sdretrieval index`")
    reading.add_argument("--encoding", default="utf-8", help="of the text (default: utf-8)")
    reading.add_argument("--skip-bad", action="store_true", help="leave out bad documents instead of stopping")
    reading.add_argument("--language", metavar="CODE", help="of the text, as in `sdretrieval index` (default: en)")
    reading.add_argument("--stemmer", metavar="NAME", help="of English: porter (default), krovetz, none")
    reading.add_argument("--keep-stopwords", action="store_true", help="of English (default: remove them)")


def run(args: argparse.Namespace) -> int:
    if args.list_models:
        from sdretrieval.classify.models import describe

        print(describe())
        return 0
    _check(args)
    args.model = args.model or "sd"
    report: dict[str, Any] = {}
    with _warnings_for_people():
        if args.load:
            from sdretrieval.classify.saved_models import load_classifier

            classifier: TextClassifier | None = load_classifier(args.load)
        else:
            classifier = _learn(args, report)
        if classifier is not None:
            report = {**_about(classifier), **report}
            if args.test:
                found = _assess(classifier, _test_documents(args, classifier))
                report["test"] = found
        if classifier is not None and (args.input or args.text):
            _label(args, classifier)
    _print(args, report)
    return 0


def _check(args: argparse.Namespace) -> None:
    """Refuse, before any work, what makes no sense together."""
    from sdretrieval.files import check_writable

    for path in (args.save, args.output, args.confusion):
        if path:
            check_writable(path)
    measured = [
        flag for flag in ("--test", "--held-out", "--split-field", "--cv")
        if getattr(args, flag[2:].replace("-", "_")) is not None
    ]  # fmt: skip
    if len(measured) > 1:
        raise ParameterError(f"{measured[0]} and {measured[1]} cannot be combined", remedy="Measure one way at a time.")
    if args.load:
        for flag in ("--save", "--held-out", "--split-field", "--cv", "--labels", "--largest"):
            if getattr(args, flag[2:].replace("-", "_")) is not None:
                raise ParameterError(f"{flag} is for --train: a loaded classifier is as it is", remedy="Leave it out.")
        if args.model or args.settings or args.tune or args.multi_label:
            raise ParameterError("--model, --set, --tune and --multi-label are for --train", remedy="Leave them out.")
        if not (args.test or args.input or args.text):
            raise ParameterError("nothing to do with the classifier", remedy="Pass --input, --text or --test.")
    elif not (measured or args.save or args.input or args.text):
        raise ParameterError(
            "nothing to do with the classifier", remedy="Pass --save, --input, or --held-out 0.2 to see how good it is."
        )
    if args.input and args.text:
        raise ParameterError("--input and --text cannot be combined", remedy="Label one of them.")
    if args.output and not (args.input or args.text):
        raise ParameterError("--output is for the labels of --input", remedy="Pass --input, or --json for measures.")
    if args.json and (args.input or args.text) and not args.output:
        raise ParameterError("measures and labels would be mixed on the screen", remedy="Pass --output for the labels.")
    if args.confusion and not measured:
        raise ParameterError("--confusion needs a test", remedy="Pass --test, --held-out, --split-field or --cv.")
    if args.labels and args.largest is not None:
        raise ParameterError("--labels and --largest cannot be combined")
    if args.largest is not None and args.largest < 1:
        raise ParameterError(f"--largest must be 1 or more, got {args.largest}")


# Learning ---------------------------------------------------------------------------------------------------------


def _learn(args: argparse.Namespace, report: dict[str, Any]) -> TextClassifier | None:
    """Train, and measure where that is part of it; None where nothing but folds was asked for."""
    from sdretrieval.classify.models import classifier_model
    from sdretrieval.classify.saved_models import save_classifier
    from sdretrieval.classify.text_classifier import held_out_rows
    from sdretrieval.snapshot import UNDATED

    classifier_model(args.model).parameters(args.settings)  # before reading anything
    fields = [args.split_field] if args.split_field else []
    corpus = _read(args, args.train, fields=fields)
    labels = _labels(args, corpus)
    corpus = _usable(args, corpus, labels)
    if classifier_model(args.model).timed and not (corpus.times != UNDATED).any():
        raise InputError(
            f"{args.model} follows the time, and none of {len(corpus):,} documents has a date", file=args.train,
            remedy="Name the field of the date with --date-field.",
        )  # fmt: skip
    classifier = None
    if args.cv:
        report["folds"] = _folds(args, corpus, labels)
        if not (args.save or args.input or args.text):
            chosen = classifier_model(args.model).parameters(args.settings)
            report.update({"model": args.model, "parameters": "tuned in each fold" if args.tune else chosen})
            return None
    elif args.split_field:
        values = corpus.fields[args.split_field]
        inside, outside = ([value == part for value in values] for part in ("train", "test"))
        for part, rows in (("train", inside), ("test", outside)):
            if not any(rows):
                told = ", ".join(f"{value!r}" for value, _ in Counter(map(str, values)).most_common(5))
                raise InputError(
                    f"field {args.split_field!r} says {part!r} in no document; it says {told}", file=args.train
                )
        classifier = _train(args, corpus.select(_mask(inside)), labels, report)
        report["test"] = _assess(classifier, corpus.select(_mask(outside)))
    elif args.held_out is not None:
        held = held_out_rows(corpus, args.held_out, args.seed, multi_label=args.multi_label)
        classifier = _train(args, corpus.select(~held), labels, report)
        report["test"] = _assess(classifier, corpus.select(held))
        if args.save or args.input or args.text:
            _say("measured on what it did not see; now learning from all documents")
            classifier = None
    if classifier is None:
        classifier = _train(args, corpus, labels, report)
    if args.save:
        classifier.about["label_field"] = args.label_field or "labels"
        save_classifier(classifier, args.save)
        _say(f"saved {args.save}")
    return classifier


def _train(
    args: argparse.Namespace, corpus: LabelledCorpus, labels: list[str] | None, report: dict[str, Any]
) -> TextClassifier:
    from sdretrieval.classify.text_classifier import train, tune

    settings: Any = args.settings
    if args.tune:
        settings, trials = tune(
            corpus, args.model, args.settings, multi_label=args.multi_label, labels=labels, min_df=args.min_df,
            seed=args.seed,
        )  # fmt: skip
        report["tuning"] = [{**settings, "value": round(value, 6)} for settings, value in trials]
    return train(corpus, args.model, settings, multi_label=args.multi_label, labels=labels, min_df=args.min_df)


def _folds(args: argparse.Namespace, corpus: LabelledCorpus, labels: list[str] | None) -> list[Assessment]:
    from sdretrieval.classify.text_classifier import folds
    from sdretrieval.progress import progress

    masks = list(folds(corpus, args.cv, args.seed, multi_label=args.multi_label))
    found = []
    for rows in progress(masks, total=len(masks), label="folds", unit=" folds"):
        classifier = _train(args, corpus.select(~rows), labels, {})
        found.append(_assess(classifier, corpus.select(rows)))
    return found


def _labels(args: argparse.Namespace, corpus: LabelledCorpus) -> list[str] | None:
    """The labels to learn; None for all of them."""
    sizes = Counter(label for labels in corpus.labels for label in labels)
    if args.labels:
        absent = [label for label in args.labels if label not in sizes]
        if absent:
            usual = ", ".join(label for label, _ in sizes.most_common(8))
            raise ParameterError(f"no document has the label {absent[0]!r}", remedy=f"The largest are: {usual}.")
        return sorted(set(args.labels))
    if args.largest is not None:
        return sorted(label for label, _ in sorted(sizes.items(), key=lambda item: (-item[1], item[0]))[: args.largest])
    return None


def _usable(args: argparse.Namespace, corpus: LabelledCorpus, labels: list[str] | None) -> LabelledCorpus:
    """Without documents that say nothing: unlabelled ones, and with one label a document those of other labels."""
    keep = [bool(found) for found in corpus.labels]
    if not all(keep):
        _say(f"left out {keep.count(False):,} documents without a label")
    if not args.multi_label:
        if labels is not None:
            before = keep.count(True)
            keep = [
                kept and any(one in labels for one in found) for kept, found in zip(keep, corpus.labels, strict=True)
            ]
            if before > keep.count(True):
                _say(f"left out {before - keep.count(True):,} documents of other labels")
        for docid, found, kept in zip(corpus.docids, corpus.labels, keep, strict=True):
            if kept and len(found) > 1:
                raise InputError(
                    f"document {docid!r} has {len(found)} labels ({', '.join(found[:4])})", file=corpus.name or None,
                    remedy="Pass --multi-label, or give each document one label.",
                )  # fmt: skip
    return corpus.select(_mask(keep))


# Reading and testing ------------------------------------------------------------------------------------------------


def _read(args: argparse.Namespace, source: str, *, fields: list[str] | None = None, **options: Any) -> LabelledCorpus:
    from sdretrieval.corpus import FORMATS
    from sdretrieval.labelled import read_labelled

    if args.format not in ("auto", *FORMATS):
        raise ParameterError(f"unknown format {args.format!r}", remedy=f"One of: auto, {', '.join(FORMATS)}.")
    options = {"analyzer": _analyzer(args), "label_field": args.label_field or "labels", **options}
    corpus = read_labelled(
        source, fields=fields or (), label_separator=args.label_separator, id_field=args.id_field,
        contents=args.contents_field, date_field=args.date_field, date_format=args.date_format, format=args.format,
        encoding=args.encoding, skip_bad=args.skip_bad, **options,
    )  # fmt: skip
    if corpus.without_text:
        shown = ", ".join(corpus.without_text[:5]) + (" …" if len(corpus.without_text) > 5 else "")
        _say(f"{len(corpus.without_text):,} documents have no text ({shown})")
    return corpus


def _analyzer(args: argparse.Namespace) -> Any:
    """As asked for; None where nothing was, so that an index keeps its own."""
    if not (args.language or args.stemmer or args.keep_stopwords):
        return None
    from sdretrieval.lucene.analysis import AnalyzerSpec

    return AnalyzerSpec(
        language=args.language or "en", stemmer=args.stemmer or "porter", stopwords=not args.keep_stopwords
    )


def _test_documents(args: argparse.Namespace, classifier: TextClassifier) -> LabelledCorpus:
    label_field = args.label_field or classifier.about.get("label_field") or "labels"
    corpus = _read(args, args.test, analyzer=classifier.analyzer, label_field=str(label_field))
    keep = [bool(found) for found in corpus.labels]
    if not all(keep):
        _say(f"left out {keep.count(False):,} documents of {args.test} without a label")
    return corpus.select(_mask(keep))


def _assess(classifier: TextClassifier, corpus: LabelledCorpus) -> Assessment:
    from sdretrieval.classify.assessment import assess

    found = assess(classifier, corpus)
    if found.unknown:
        shown = ", ".join(list(found.unknown)[:4]) + (" …" if len(found.unknown) > 4 else "")
        _say(f"{sum(found.unknown.values()):,} test documents bear labels never learnt ({shown}): they count as wrong")
    return found


# Labelling ----------------------------------------------------------------------------------------------------------


def _label(args: argparse.Namespace, classifier: TextClassifier) -> None:
    """Write the labels of new documents, one line each, in the order of the input."""
    from sdretrieval.files import atomic_writer

    if args.text:
        from sdretrieval.corpus import Document
        from sdretrieval.labelled import corpus_from_documents

        if not args.text.strip():
            raise ParameterError("--text is empty")
        corpus = corpus_from_documents(
            [Document("text", args.text)], label_field=None, analyzer=classifier.analyzer, name="--text"
        )
    else:
        corpus = _read(args, args.input, label_field=None, analyzer=classifier.analyzer)
    scores = classifier.scores(corpus)
    strange = int((corpus.aligned(classifier.vocabulary).getnnz(axis=1) == 0).sum())
    if strange:
        _say(f"{strange:,} documents have no word that the classifier knows: their labels are guesses")
    if args.output:
        with atomic_writer(args.output) as out:
            for line in _lines(classifier, corpus, scores, table=".tsv" in args.output):
                out.write(line + "\n")
        _say(f"wrote {len(corpus) + len(corpus.without_text):,} lines to {args.output}")
    else:
        for line in _lines(classifier, corpus, scores, table=False):
            print(line)


def _lines(classifier: TextClassifier, corpus: LabelledCorpus, scores: np.ndarray, *, table: bool) -> Iterator[str]:
    decided, probabilities = classifier.decide(scores), classifier.probabilities(scores)
    number = {label: k for k, label in enumerate(classifier.labels)}
    for docid, labels, row in zip(corpus.docids, decided, probabilities, strict=True):
        values = {label: round(float(row[number[label]]), 6) for label in labels}
        if table:
            yield f"{docid}\t{'|'.join(labels)}\t" + "|".join(f"{value:g}" for value in values.values())
        elif classifier.multi_label:
            yield json.dumps({"id": docid, "labels": list(labels), "probability": values}, ensure_ascii=False)
        else:
            yield json.dumps({"id": docid, "label": labels[0], "probability": values[labels[0]]}, ensure_ascii=False)
    for docid in corpus.without_text:  # nothing to go by, but a line for every document
        if table:
            yield f"{docid}\t\t"
        else:
            yield json.dumps({"id": docid, **({"labels": []} if classifier.multi_label else {"label": None})})


# Printing -----------------------------------------------------------------------------------------------------------


def _about(classifier: TextClassifier) -> dict[str, Any]:
    return {
        "model": classifier.model.name,
        "parameters": classifier.parameters,
        "labels": classifier.labels,
        "multi_label": classifier.multi_label,
        "words": len(classifier.vocabulary),
        "trained_on": classifier.about,
    }


def _print(args: argparse.Namespace, report: dict[str, Any]) -> None:
    test: Assessment | None = report.get("test")
    folds: list[Assessment] = report.get("folds", [])
    if args.confusion:
        _write_confusion(args.confusion, [test] if test else folds)
    if args.json:
        plain = dict(report)
        if test:
            plain["test"] = test.to_json()
        if folds:
            plain["folds"] = [found.to_json() for found in folds]
            plain["mean"] = _means(folds)
        if isinstance(plain.get("parameters"), dict):  # JSON has no infinity
            plain["parameters"] = {k: "inf" if v == inf else v for k, v in plain["parameters"].items()}
        print(json.dumps(plain, ensure_ascii=False, indent=1, default=str))
        return
    if not (test or folds):
        return
    print(_heading(report))
    if test:
        print(_measures(test, several=report["multi_label"]))
    if folds:
        print(_fold_table(folds))


def _heading(report: dict[str, Any]) -> str:
    values = report["parameters"]
    shown = values if isinstance(values, str) else ", ".join(f"{k}={_brief(k, v)}" for k, v in values.items())
    lines = [f"{report['model']} ({shown})"]
    if "trained_on" in report:
        about = report["trained_on"]
        kind = " (several a document)" if report["multi_label"] else ""
        lines.append(
            f"learnt {len(report['labels'])} labels{kind} from {about.get('documents', 0):,} documents, "
            f"{report['words']:,} words, in {about.get('seconds', 0):.2f} s"
        )
    return "\n".join(lines)


def _brief(name: str, value: Any) -> str:
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if name in ("bandwidth", "resolution") and not isinstance(value, str):
        from sdretrieval.temporal.timeline import format_duration

        return format_duration(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _measures(found: Assessment, *, several: bool) -> str:
    from sdretrieval.evaluate.tables import number, text_table

    lines = [
        f"measured on {found.documents:,} documents, labelled in {found.seconds:.2f} s",
        "",
        f"accuracy   {found.accuracy:.4f}" + ("  (documents with all labels right)" if several else ""),
        f"macro-BEP  {number(found.macro_bep)}",
        f"micro-BEP  {number(found.micro_bep)}",
        "",
        text_table(
            ["label", "documents", "predicted", "right", "precision", "recall", "BEP"],
            [
                [s.label, str(s.truth), str(s.predicted), str(s.right), number(s.precision), number(s.recall),
                 number(s.bep)]
                for s in found.labels
            ],
        ),
    ]  # fmt: skip
    if found.confusion is not None:
        lines += ["", _confusion_text(found)]
    return "\n".join(lines)


WIDEST_CONFUSION = 12  # labels; more do not fit a screen


def _confusion_text(found: Assessment) -> str:
    from sdretrieval.evaluate.tables import text_table

    assert found.confusion is not None
    names = [score.label for score in found.labels]
    if len(names) <= WIDEST_CONFUSION:
        short = [name if len(name) <= 10 else name[:9] + "…" for name in names]
        rows = [[name, *map(str, row)] for name, row in zip(names, found.confusion.tolist(), strict=True)]
        return "confusion: rows are the truth, columns what was predicted\n" + text_table(["", *short], rows)
    rows = [[truth, given, str(n)] for truth, given, n in found.confused()]
    if not rows:
        return "nothing was confused"
    return "most confused (--confusion FILE writes the whole matrix)\n" + text_table(
        ["truth", "predicted", "documents"], rows, left=2
    )


def _means(folds: list[Assessment]) -> dict[str, float]:
    import numpy as np

    found = {name: [getattr(one, name) for one in folds] for name in ("accuracy", "macro_bep", "micro_bep")}
    return {name: round(float(np.mean(values)), 6) for name, values in found.items()} | {
        f"{name}_sd": round(float(np.std(values, ddof=1)), 6) for name, values in found.items()
    }


def _fold_table(folds: list[Assessment]) -> str:
    from sdretrieval.evaluate.tables import number, text_table

    means = _means(folds)
    names = ("accuracy", "macro_bep", "micro_bep")
    rows = [
        [str(k), str(one.documents), *(number(getattr(one, name)) for name in names)] for k, one in enumerate(folds, 1)
    ]
    rows.append(["mean", "", *(number(means[name]) for name in names)])
    rows.append(["± sd", "", *(number(means[f"{name}_sd"]) for name in names)])
    return text_table(["fold", "documents", "accuracy", "macro-BEP", "micro-BEP"], rows)


def _write_confusion(path: str, found: list[Assessment]) -> None:
    """Truth x predicted, over all folds where there are several."""
    import csv

    from sdretrieval.files import atomic_writer

    if any(one.confusion is None for one in found):
        raise ParameterError("with several labels a document there is no confusion matrix", remedy="Leave it out.")
    total: Counter[tuple[str, str]] = Counter()
    for one in found:
        names = [score.label for score in one.labels]
        assert one.confusion is not None
        for i, row in enumerate(one.confusion.tolist()):
            total.update({(names[i], names[j]): n for j, n in enumerate(row)})
    names = sorted({name for pair in total for name in pair})
    with atomic_writer(path) as out:
        table = csv.writer(out, lineterminator="\n")
        table.writerow(["truth \\ predicted", *names])
        for name in names:
            table.writerow([name, *(total[name, other] for other in names)])


def _say(text: str) -> None:
    print(f"sdretrieval classify: {text}", file=sys.stderr)


def _mask(values: list[bool]) -> np.ndarray:
    import numpy as np

    return np.array(values, dtype=bool)


@contextmanager
def _warnings_for_people() -> Iterator[None]:
    """What scikit-learn and the fits warn of, as one line each."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        yield
    for text in dict.fromkeys(
        str(one.message).splitlines()[0] for one in caught if "onverge" in type(one.message).__name__
    ):
        _say(text)
