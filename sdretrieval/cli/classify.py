"""``sdretrieval classify``: learn labels from labelled documents, label new ones, say how well that works."""

from __future__ import annotations

import argparse
from typing import NoReturn

from sdretrieval.cli import document_options
from sdretrieval.cli.options import add_set_argument
from sdretrieval.cli.value_types import natural, positive
from sdretrieval.core.errors import ParameterError

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
    add_set_argument(learning, "a setting of the model; may be repeated")
    learning.add_argument(
        "--tune", action="store_true", help="choose the settings on a fifth of the training documents"
    )
    learning.add_argument("--multi-label", action="store_true", help="a document may bear several labels")
    learning.add_argument("--labels", nargs="+", metavar="LABEL", help="learn these alone")
    learning.add_argument("--largest", type=positive, metavar="N", help="learn the N labels with most documents alone")
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
    doing.add_argument("--seed", type=natural, default=0, help="of random splits (default: 0)")
    doing.add_argument("--confusion", metavar="FILE", help="write the confusion matrix as CSV")
    doing.add_argument("--json", action="store_true", help="print measures as JSON")

    reading = parser.add_argument_group("how to read the documents")
    document_options.add_label_arguments(
        reading, default=None, help="field of the label or labels (default: labels, or the classifier's)"
    )
    document_options.add_field_arguments(reading, date="field of the date, for models that follow the time")
    document_options.add_file_arguments(reading)
    document_options.add_analyzer_arguments(reading)


def run(args: argparse.Namespace) -> int:
    if args.list_models:
        from sdretrieval.learn.classify.classifiers import describe

        print(describe())
        return 0
    _check(args)
    args.model = args.model or "sd"
    from sdretrieval.cli.classify_work import work

    work(args)
    return 0


def _check(args: argparse.Namespace) -> None:
    """Refuse, before any work, what makes no sense together."""
    from sdretrieval.core.files import check_writable

    for path in (args.save, args.output, args.confusion):
        if path:
            check_writable(path)
    measured = _given(args, "--test", "--held-out", "--split-field", "--cv")
    of_training = _given(args, "--save", "--held-out", "--split-field", "--cv", "--labels", "--largest")
    labelling = args.input or args.text
    if len(measured) > 1:
        _refuse(f"{measured[0]} and {measured[1]} cannot be combined", "Measure one way at a time.")
    if args.load and of_training:
        _refuse(f"{of_training[0]} is for --train: a loaded classifier is as it is", "Leave it out.")
    if args.load and (args.model or args.settings or args.tune or args.multi_label):
        _refuse("--model, --set, --tune and --multi-label are for --train", "Leave them out.")
    if not (measured or labelling or args.save):
        other = "--test" if args.load else "--save, or --held-out 0.2 to see how good it is"
        _refuse("nothing to do with the classifier", f"Pass --input, --text, {other}.")
    if args.input and args.text:
        _refuse("--input and --text cannot be combined", "Label one of them.")
    if args.output and not labelling:
        _refuse("--output is for the labels of --input", "Pass --input, or --json for measures.")
    if args.json and labelling and not args.output:
        _refuse("measures and labels would be mixed on the screen", "Pass --output for the labels.")
    if args.confusion and not measured:
        _refuse("--confusion needs a test", "Pass --test, --held-out, --split-field or --cv.")
    if args.labels and args.largest is not None:
        _refuse("--labels and --largest cannot be combined", "Leave one of them out.")


def _refuse(message: str, remedy: str) -> NoReturn:
    raise ParameterError(message, remedy=remedy)


def _given(args: argparse.Namespace, *flags: str) -> list[str]:
    """Those of the flags that were given."""
    return [flag for flag in flags if getattr(args, flag[2:].replace("-", "_")) is not None]
