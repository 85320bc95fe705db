"""``sdretrieval evolve``: classifiers that follow a dated, partly labelled collection through time."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sdretrieval.cli import document_options
from sdretrieval.cli.value_types import natural
from sdretrieval.core.errors import ParameterError
from sdretrieval.core.tables import json_number

if TYPE_CHECKING:
    from sdretrieval.learn.evolving.frame_classifier import FrameClassifier
    from sdretrieval.learn.evolving.run import FrameResult, Selection
    from sdretrieval.learn.labelled import LabelledCorpus

EXAMPLE = """\
examples:
  predict the unlabelled documents month by month, and keep the classifier for the next months:
    sdretrieval evolve --input posts.jsonl --output runs/predicted.jsonl --save runs/lists.state
    sdretrieval evolve --input next-month.jsonl --resume runs/lists.state --output runs/next.jsonl

  how well would ten labels a month do? Show ten, hide the rest, and measure on those:
    sdretrieval evolve --index indexes/lists --classes r-devel rcpp-devel --labels-per-frame 10 --plot runs/evolve.png

methods:
  ssl-e      each frame's classifier stays near the previous one's (Jia, Yan & Zhang 2009)
  ssl        each frame on its own          ssl-naive  each frame together with the one before it
  offline    all frames at once: later frames inform earlier ones too

A document without a label is unlabelled. Frames are taken in order of time; undated documents are left out. A frame
without labels goes by history and neighbours; a label that was never seen before is a new class from then on.
"""

METHODS = {"ssl-e": "SSLE", "ssl": "SSL", "ssl-naive": "SSLNaive", "offline": "SSLEOffline"}
# Parameters of the classifiers by flag; the latter may change from one frame to the next, the former may not.
LASTING = {"--frame": "frame", "--kernel": "kernel", "--rbf-gamma": "gamma"}
CHANGING = ("gamma_A", "gamma_I", "neighbours", "representer")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    source = parser.add_argument_group("documents").add_mutually_exclusive_group(required=True)
    source.add_argument("--index", metavar="DIR", help="a Lucene index that stores labels and dates")
    source.add_argument("--input", nargs="+", metavar="FILE", help="JSONL or any corpus that `sdretrieval index` reads")
    documents = parser.add_argument_group("what is in them")
    document_options.add_label_arguments(documents, default="labels", help="default: %(default)s")
    document_options.add_field_arguments(
        documents, date="field of the date (default: date, or what the index was made with)"
    )
    document_options.add_file_arguments(documents)
    documents.add_argument(
        "--classes", nargs="+", metavar="LABEL", help="only these labels count; documents with others are left out"
    )
    documents.add_argument(
        "--frame",
        default=None,
        metavar="TIME",
        help="year, month, week, day, hour, or a length of time such as 14d (default: month)",
    )
    method = parser.add_argument_group("method")
    method.add_argument("--method", choices=tuple(METHODS), default=None, help="default: ssl-e")
    number: Any = {"type": float, "metavar": "X"}
    method.add_argument(
        "--gamma-a", dest="gamma_A", help="γ_A, nearness to the previous classifier (default: 0.01)", **number
    )
    method.add_argument(
        "--gamma-i", dest="gamma_I", help="γ_I, agreement of neighbours, divided by n² (default: 100)", **number
    )
    method.add_argument("--neighbours", type=int, metavar="N", help="of each document in the graph (default: 10)")
    method.add_argument("--kernel", choices=("linear", "rbf"), help="of documents, not of times (default: linear)")
    method.add_argument("--rbf-gamma", dest="gamma", help="of exp(-gamma ‖x - x'‖²) (default: 1)", **number)
    method.add_argument(
        "--representer",
        choices=("frame", "history"),
        help="ssl-e: frame is the paper's, history forgets no word (default: frame)",
    )
    trial = parser.add_argument_group("measuring")
    shown = trial.add_mutually_exclusive_group()
    shown.add_argument("--labels-per-frame", type=int, metavar="N", help="show so many labels a frame, hide the others")
    shown.add_argument("--label-fraction", type=float, metavar="X", help="show this share of the labels of a frame")
    trial.add_argument("--seed", type=natural, default=0, help="of the labels shown (default: %(default)s)")
    output = parser.add_argument_group("output")
    output.add_argument(
        "--output", metavar="FILE", help="predictions, a document a line: JSON, or a table where it ends in .tsv"
    )
    output.add_argument("--plot", metavar="FILE", help="AUC, spatial and temporal cost over time (.png, .svg, .pdf)")
    output.add_argument("--save", metavar="FILE", help="the classifier, to go on with later")
    output.add_argument(
        "--resume", metavar="FILE", help="go on from a saved classifier; frames it has seen are skipped"
    )
    output.add_argument("--json", action="store_true", help="print the frames as JSON")


def run(args: argparse.Namespace) -> int:
    from sdretrieval.core.files import check_writable
    from sdretrieval.core.plotting import check_figure_name

    for path in (args.output, args.plot, args.save):
        if path is not None:
            check_writable(path)
    if args.plot is not None:
        check_figure_name(args.plot)
    if args.save and args.method == "offline":
        raise ParameterError("--save: the offline method cannot go on later", remedy="Use --method ssl-e.")

    from sdretrieval.learn.evolving.run import Words, evolve, load_run, save_run
    from sdretrieval.learn.labelled import read_labelled

    model, words = (_new_model(args), Words()) if args.resume is None else load_run(args.resume)
    if args.resume is not None:
        _change(args, model)
    args.date_field = args.date_field or (None if args.index else "date")
    options = {"label_field": args.label_field, "labels_required": False, **document_options.reading_options(args)}
    corpus = read_labelled(args.index or args.input, **options)
    selection = _selected(args, corpus, model)
    results = list(evolve(corpus, selection, model, words))
    if args.output is not None:
        write_predictions(args.output, results, corpus, set(selection.rows[selection.shown].tolist()))
        print(f"wrote {sum(len(r.rows) for r in results)} predictions to {args.output}", file=sys.stderr)
    if args.save is not None:
        save_run(args.save, model, words)
    if args.plot is not None:
        _plot(Path(args.plot), type(model).__name__, results)
    if args.json:
        json.dump({"frames": [as_dict(result) for result in results]}, sys.stdout, ensure_ascii=False, indent=1)
        print()
    else:
        print(table(results))
    return 0


def _new_model(args: argparse.Namespace) -> FrameClassifier:
    from sdretrieval.learn import evolving

    method = args.method or "ssl-e"
    given = {name: value for name in (*LASTING.values(), *CHANGING) if (value := getattr(args, name)) is not None}
    if method != "ssl-e" and "representer" in given:
        raise ParameterError(f"--representer is of ssl-e, not of {method}", remedy="Leave it out.")
    if method != "offline":
        given["remember"] = 1
    return getattr(evolving, METHODS[method])(**given)


def _change(args: argparse.Namespace, model: FrameClassifier) -> None:
    """The flags in the place of a saved classifier's parameters."""
    method = type(model).__name__
    if args.method is not None and METHODS[args.method] != method:
        raise ParameterError(
            f"{args.resume} holds a {method}: --method {args.method} cannot go on from it", remedy="Leave --method out."
        )
    if args.representer is not None and method != "SSLE":
        raise ParameterError(f"--representer is of ssl-e: {args.resume} holds a {method}", remedy="Leave it out.")
    for flag, name in LASTING.items():
        value = getattr(args, name)
        if value is not None and value != getattr(model, name):
            raise ParameterError(
                f"{flag} {value}: {args.resume} was made with {getattr(model, name)}",
                remedy="Leave the flag out, or start again without --resume.",
            )
    model.set_params(**{name: value for name in CHANGING if (value := getattr(args, name)) is not None})


def _selected(args: argparse.Namespace, corpus: LabelledCorpus, model: FrameClassifier) -> Selection:
    """What takes part, without the frames that a resumed classifier has seen."""
    from sdretrieval.learn.evolving.run import select

    selection = select(
        corpus,
        frame=model.frame,
        classes=args.classes,
        per_frame=args.labels_per_frame,
        fraction=args.label_fraction,
        seed=args.seed,
    )
    last = model.frames_[-1].name if model.started and model.frames_ else ""
    new = selection.frames > last
    for number, why in (
        (selection.undated, "have no date"),
        (selection.of_other_classes, "have other labels only"),
        (int((~new).sum()) if new.any() else 0, f"are of frames up to {last}, seen before"),
    ):
        if number:
            print(f"{number} documents {why}: left out", file=sys.stderr)
    if not new.any():
        raise ParameterError(
            f"every document is of a frame up to {last}, which the saved classifier has seen",
            remedy="Give documents of later frames.",
        )
    if args.resume is None and not selection.shown.any():
        raise ParameterError(
            f"no document has a label in the field {args.label_field!r}", remedy="Check --label-field and --classes."
        )
    return selection.part(new)


def write_predictions(path: str, results: list[FrameResult], corpus: LabelledCorpus, shown: set[int]) -> None:
    """Document, frame, predicted label, decision value, and the label it came with."""
    from sdretrieval.core.files import atomic_writer

    as_table = ".tsv" in Path(path).suffixes
    with atomic_writer(path) as out:
        if as_table:
            out.write("id\tframe\tpredicted\tscore\tlabel\tlabelled\n")
        for result in results:
            name = result.record.name
            for row, predicted, scores in zip(result.rows, result.predicted, result.scores, strict=True):
                docid, label, labelled = corpus.docids[row], corpus.labels[row], int(row) in shown
                best = float(scores if scores.ndim == 0 else scores.max(initial=0.0))
                if as_table:
                    yes = "yes" if labelled else "no"
                    cells = (docid, name, str(predicted), f"{best:.6g}", ",".join(label), yes)
                    out.write("\t".join(" ".join(cell.split()) for cell in cells) + "\n")
                    continue
                each = [-best, best] if scores.ndim == 0 else [float(s) for s in scores]
                record = {
                    "id": docid,
                    "frame": name,
                    "predicted": str(predicted) or None,
                    "scores": {str(c): round(s, 6) for c, s in zip(result.classes, each, strict=True)},
                    "label": list(label),
                    "labelled": labelled,
                }
                out.write(json.dumps(record, ensure_ascii=False) + "\n")


def as_dict(result: FrameResult) -> dict[str, Any]:
    quality = {"auc": json_number(result.auc), "accuracy": json_number(result.accuracy)}
    return {**asdict(result.record), **quality}


def table(results: list[FrameResult]) -> str:
    width = max(5, *(len(result.record.name) for result in results))
    lines = [f"{'frame':<{width}}  documents  labelled    AUC  accuracy  spatial cost  temporal cost"]
    for result in results:
        record = result.record
        quality = "".join(
            f"{'—' if isnan(x) else f'{x:.4f}':>{w}}" for x, w in ((result.auc, 7), (result.accuracy, 10))
        )
        lines.append(
            f"{record.name:<{width}}  {record.documents:9d}  {record.labelled:8d}{quality}  "
            f"{record.spatial_cost:12.3e}  {record.temporal_cost:13.4f}" + (f"  {record.note}" if record.note else "")
        )
    measured = [result for result in results if not isnan(result.accuracy)]
    if measured:
        import numpy as np

        area, accuracy = (np.array([getattr(r, name) for r in measured]) for name in ("auc", "accuracy"))
        known = area[~np.isnan(area)]
        lines.append(
            f"mean (sd) over {len(measured)} frames, on documents whose label was hidden: "
            + (f"AUC {known.mean():.4f} ({known.std():.4f}), " if len(known) else "")
            + f"accuracy {accuracy.mean():.4f} ({accuracy.std():.4f})"
        )
    return "\n".join(lines)


def _plot(path: Path, method: str, results: list[FrameResult]) -> None:
    from sdretrieval.learn.evolving.plots import write_costs

    curves: dict[str, list[float]] = {}
    if any(not isnan(result.auc) for result in results):
        curves["AUC"] = [result.auc for result in results]
    curves["spatial cost"] = [result.record.spatial_cost for result in results]
    curves["temporal cost"] = [result.record.temporal_cost for result in results]
    write_costs(path, [result.record.name for result in results], {method: curves})
