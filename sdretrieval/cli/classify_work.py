"""What ``sdretrieval classify`` does once its flags make sense: learn, measure, label, print."""

from __future__ import annotations

import argparse
import csv
import json
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from typing import Any

import numpy as np

from sdretrieval.cli import document_options
from sdretrieval.collection.corpus import Document
from sdretrieval.core.errors import InputError, ParameterError, few
from sdretrieval.core.files import atomic_writer
from sdretrieval.core.progress import progress
from sdretrieval.core.tables import number, text_table
from sdretrieval.core.timeline import format_duration
from sdretrieval.core.times import UNDATED
from sdretrieval.learn.classify.assessment import Assessment, assess, tune
from sdretrieval.learn.classify.classifiers import classifier_model
from sdretrieval.learn.classify.saved_models import load_classifier, save_classifier
from sdretrieval.learn.classify.text_classifier import TextClassifier, folds, held_out_rows, train
from sdretrieval.learn.labelled import LabelledCorpus, corpus_from_documents, read_labelled

MEASURES = ("accuracy", "macro_f1", "micro_f1", "macro_bep", "micro_bep")
WIDEST_CONFUSION = 12  # labels; more do not fit a screen


def work(args: argparse.Namespace) -> None:
    report: dict[str, Any] = {}
    with _warnings_for_people():
        classifier = load_classifier(args.load) if args.load else _learn(args, report)
        if classifier is not None:
            report = {**_about(classifier), **report}
            if args.test:
                report["test"] = _assess(classifier, _test_documents(args, classifier))
            if args.input or args.text:
                _label(args, classifier)
    _print(args, report)


# Learning ---------------------------------------------------------------------------------------------------------


def _learn(args: argparse.Namespace, report: dict[str, Any]) -> TextClassifier | None:
    """Train, and measure where that is part of it; None where nothing but folds was asked for."""
    chosen = classifier_model(args.model).parameters(args.settings)  # before reading anything
    corpus, labels = _training_documents(args)
    kept = args.save or args.input or args.text
    classifier = None
    if args.cv is not None:
        report["folds"] = _folds(args, corpus, labels)
        if not kept:
            report.update({"model": args.model, "parameters": "tuned in each fold" if args.tune else chosen})
            return None
    elif args.split_field or args.held_out is not None:
        inside, outside = _split(args, corpus)
        classifier = _train(args, inside, labels, report)
        report["test"] = _assess(classifier, outside)
        if kept and not args.split_field:
            _say("measured on what it did not see; now learning from all documents")
            classifier = None
    if classifier is None:
        classifier = _train(args, corpus, labels, report)
    if args.save:
        classifier.about["label_field"] = args.label_field or "labels"
        save_classifier(classifier, args.save)
        _say(f"saved {args.save}")
    return classifier


def _training_documents(args: argparse.Namespace) -> tuple[LabelledCorpus, list[str] | None]:
    """Those that can be learnt from, and the labels to learn; None for all of them."""
    corpus = _read(args, args.train, fields=[args.split_field] if args.split_field else [])
    labels = _labels(args, corpus)
    corpus = _usable(args, corpus, labels)
    if classifier_model(args.model).timed and not (corpus.times != UNDATED).any():
        raise InputError(
            f"{args.model} follows the time, and none of {len(corpus):,} documents has a date",
            file=args.train,
            remedy="Name the field of the date with --date-field.",
        )
    return corpus, labels


def _split(args: argparse.Namespace, corpus: LabelledCorpus) -> tuple[LabelledCorpus, LabelledCorpus]:
    """Documents to learn from and to measure on: by a field of theirs, or at random."""
    if not args.split_field:
        held = held_out_rows(corpus, args.held_out, args.seed, multi_label=args.multi_label)
        return corpus.select(~held), corpus.select(held)
    values = corpus.fields[args.split_field]
    for part in ("train", "test"):
        if part not in values:
            told = ", ".join(f"{value!r}" for value, _ in Counter(map(str, values)).most_common(5))
            raise InputError(
                f"field {args.split_field!r} says {part!r} in no document; it says {told}",
                file=args.train,
                remedy="Name a field that says train and test, or measure with --held-out 0.2.",
            )
    return corpus.select([v == "train" for v in values]), corpus.select([v == "test" for v in values])


def _train(
    args: argparse.Namespace, corpus: LabelledCorpus, labels: list[str] | None, report: dict[str, Any]
) -> TextClassifier:
    settings: Any = args.settings
    options = {"multi_label": args.multi_label, "labels": labels, "min_df": args.min_df}
    if args.tune:
        settings, trials = tune(corpus, args.model, args.settings, seed=args.seed, **options)
        report["tuning"] = [{**settings, "value": round(value, 6)} for settings, value in trials]
    return train(corpus, args.model, settings, **options)


def _folds(args: argparse.Namespace, corpus: LabelledCorpus, labels: list[str] | None) -> list[Assessment]:
    masks = list(folds(corpus, args.cv, args.seed, multi_label=args.multi_label))
    return [
        _assess(_train(args, corpus.select(~rows), labels, {}), corpus.select(rows))
        for rows in progress(masks, total=len(masks), label="folds", unit=" folds")
    ]


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
    corpus = _without(corpus, [not found for found in corpus.labels], "without a label")
    if args.multi_label:
        return corpus
    if labels is not None:
        others = [not any(one in labels for one in found) for found in corpus.labels]
        corpus = _without(corpus, others, "of other labels")
    corpus.single_labels()  # an error where a document has several
    return corpus


def _without(corpus: LabelledCorpus, out: list[bool], which: str) -> LabelledCorpus:
    if any(out):
        _say(f"left out {sum(out):,} documents {which}")
    return corpus.select([not one for one in out])


# Reading and testing ------------------------------------------------------------------------------------------------


def _read(args: argparse.Namespace, source: str, **options: Any) -> LabelledCorpus:
    given = document_options.reading_options(args)
    given |= {"analyzer": document_options.analyzer_from(args), "label_field": args.label_field or "labels"}
    corpus = read_labelled(source, **(given | options))
    if corpus.without_text:
        _say(f"{len(corpus.without_text):,} documents have no text ({few(corpus.without_text)})")
    return corpus


def _test_documents(args: argparse.Namespace, classifier: TextClassifier) -> LabelledCorpus:
    label_field = args.label_field or classifier.about.get("label_field") or "labels"
    corpus = _read(args, args.test, analyzer=classifier.analyzer, label_field=str(label_field))
    return _without(corpus, [not found for found in corpus.labels], f"of {args.test} without a label")


def _assess(classifier: TextClassifier, corpus: LabelledCorpus) -> Assessment:
    found = assess(classifier, corpus)
    if found.unknown:
        wrong = f"{sum(found.unknown.values()):,} test documents bear labels never learnt ({few(found.unknown)})"
        _say(f"{wrong}: they count as wrong")
    return found


# Labelling ----------------------------------------------------------------------------------------------------------


def _label(args: argparse.Namespace, classifier: TextClassifier) -> None:
    """Write the labels of new documents, one line each, in the order of the input."""
    if args.text:
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
    column = {label: k for k, label in enumerate(classifier.labels)}
    decided = zip(corpus.docids, classifier.decide(scores), classifier.probabilities(scores), strict=True)
    rows = [
        (docid, labels, {label: round(float(row[column[label]]), 6) for label in labels})
        for docid, labels, row in decided
    ]
    nothing = [(docid, (), None) for docid in corpus.without_text]  # nothing to go by, but a line for every document
    for docid, labels, values in [*rows, *nothing]:
        if table:
            yield "\t".join([docid, "|".join(labels), "|".join(f"{value:g}" for value in (values or {}).values())])
            continue
        record: dict[str, Any] = {"id": docid}
        record |= {"labels": list(labels)} if classifier.multi_label else {"label": labels[0] if labels else None}
        if values is not None:
            record["probability"] = values if classifier.multi_label else values[labels[0]]
        yield json.dumps(record, ensure_ascii=False)


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
    if name in ("bandwidth", "resolution") and isinstance(value, float):
        return format_duration(value)
    return f"{value:g}" if isinstance(value, float) else str(value).lower()


def _measures(found: Assessment, *, several: bool) -> str:
    rows = [
        [s.label, *map(str, (s.truth, s.predicted, s.right)), *map(number, (s.precision, s.recall, s.f1, s.bep))]
        for s in found.labels
    ]
    lines = [
        f"measured on {found.documents:,} documents, labelled in {found.seconds:.2f} s",
        "",
        f"accuracy   {found.accuracy:.4f}" + ("  (documents with all labels right)" if several else ""),
        f"macro-F1   {number(found.macro_f1)}",
        f"micro-F1   {number(found.micro_f1)}",
        f"macro-BEP  {number(found.macro_bep)}",
        f"micro-BEP  {number(found.micro_bep)}",
        "",
        text_table(["label", "documents", "predicted", "right", "precision", "recall", "F1", "BEP"], rows),
    ]
    if found.confusion is not None:
        lines += ["", _confusion_text(found)]
    return "\n".join(lines)


def _confusion_text(found: Assessment) -> str:
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
    found = {name: [getattr(one, name) for one in folds] for name in MEASURES}
    return {name: round(float(np.mean(values)), 6) for name, values in found.items()} | {
        f"{name}_sd": round(float(np.std(values, ddof=1)), 6) for name, values in found.items()
    }


def _fold_table(folds: list[Assessment]) -> str:
    means = _means(folds)
    rows = [
        [str(k), str(one.documents), *(number(getattr(one, name)) for name in MEASURES)]
        for k, one in enumerate(folds, 1)
    ]
    rows.append(["mean", "", *(number(means[name]) for name in MEASURES)])
    rows.append(["± sd", "", *(number(means[f"{name}_sd"]) for name in MEASURES)])
    return text_table(
        ["fold", "documents", *(name.replace("_bep", "-BEP").replace("_f1", "-F1") for name in MEASURES)], rows
    )


def _write_confusion(path: str, found: list[Assessment]) -> None:
    """Truth x predicted, over all folds where there are several."""
    names = sorted({score.label for one in found for score in one.labels})
    total = np.zeros((len(names), len(names)), dtype=np.int64)
    for one in found:
        if one.confusion is None:
            raise ParameterError("with several labels a document there is no confusion matrix", remedy="Leave it out.")
        rows = np.searchsorted(names, [score.label for score in one.labels])
        total[np.ix_(rows, rows)] += one.confusion
    with atomic_writer(path) as out:
        table = csv.writer(out, lineterminator="\n")
        table.writerow(["truth \\ predicted", *names])
        table.writerows([name, *row] for name, row in zip(names, total.tolist(), strict=True))


def _say(text: str) -> None:
    print(f"sdretrieval classify: {text}", file=sys.stderr)


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
