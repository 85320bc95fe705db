"""``sdretrieval burstiness``: do words come back more often than a distribution says?"""

from __future__ import annotations

import argparse
import json
import sys
from math import isfinite
from typing import TYPE_CHECKING, Any

from sdretrieval.cli.value_types import natural
from sdretrieval.core.errors import ParameterError

if TYPE_CHECKING:
    import numpy as np

    from sdretrieval.estimate.distributions.burstiness import Burstiness, WordClass
    from sdretrieval.index.snapshot import Snapshot

EXAMPLE = """\
examples:
  how well multinomial, DCM, Dirichlet and smoothed Dirichlet predict how often a word occurs in a document, for
  frequent, less frequent and rare words; as numbers, and as a picture:
    sdretrieval burstiness --index indexes/news
    sdretrieval burstiness --index indexes/news --plot burstiness.png

  with the smoothing chosen too, and all words instead of a sample:
    sdretrieval burstiness --index indexes/news --smoothing auto --words 0

  the recipe of the thesis to the letter (densities in the place of probabilities, S by the look of the tail):
    sdretrieval burstiness --index indexes/news --as-printed --plot figure-3.5.png

Fitted to three fifths of the documents; the scale S is chosen on one fifth and everything measured on the last. KL is
the divergence of the predicted from the empirical distribution of counts, "if present" over documents that have the
word; perplexity is (3.42) over all words. Lower is better.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog, add = EXAMPLE, parser.add_argument
    add("--index", required=True, metavar="DIR", help="Lucene index (Anserini's, Pyserini's or ours)")
    add("--distributions", nargs="+", metavar="NAME", help="multinomial dcm dirichlet sd (default: all)")
    share = "of Dirichlet and SD: the share of a document's own words; auto chooses it (default: 0.9, the thesis's)"
    add("--smoothing", default="0.9", metavar="λ|auto", help=share)
    add(
        "--words", type=int, default=1000, metavar="N", help="of each class to look at; 0 is all (default: %(default)s)"
    )
    how = "how S is chosen: likelihood of documents, or how counts of 1, 2, … fall off (default: %(default)s)"
    add("--choose-by", choices=("likelihood", "tail"), default="likelihood", help=how)
    add("--as-printed", action="store_true", help="predict as the thesis does; no likelihood then")
    add("--seed", type=natural, default=0, help="of splits and samples (default: %(default)s)")
    add("--plot", metavar="FILE", help="the picture: .png, .svg or .pdf")
    add("--json", action="store_true", help="print everything as JSON")


def run(args: argparse.Namespace) -> int:
    from sdretrieval.core.files import check_writable
    from sdretrieval.estimate.distributions.burstiness import NAMES, analyse
    from sdretrieval.index.snapshot import open_snapshot

    if args.plot:
        check_writable(args.plot)
    snapshot = open_snapshot(args.index)
    found = analyse(
        snapshot.by_doc,
        smoothing=_smoothing(args.smoothing),
        words=args.words,
        seed=args.seed,
        names=list(dict.fromkeys(args.distributions or NAMES)),
        choose_by=args.choose_by,
        as_printed=args.as_printed,
    )
    if args.plot:
        from sdretrieval.estimate.distributions.burstiness_plots import write_plot

        write_plot(found, args.plot, snapshot.name)
        print(f"wrote {args.plot}", file=sys.stderr)
    if args.json:
        print(json.dumps(as_dict(found, snapshot), ensure_ascii=False, indent=1))
    else:
        print(summary(found, snapshot))
    return 0


def _smoothing(text: str) -> float | None:
    if text == "auto":
        return None
    try:
        return float(text)
    except ValueError:
        raise ParameterError(f"--smoothing must be a number or auto, got {text!r}") from None


def summary(found: Burstiness, snapshot: Snapshot) -> str:
    """Tables for people."""
    from sdretrieval.core.tables import number, text_table

    train, chosen, test = found.sizes
    how = "look of the tail" if found.choose_by == "tail" else "likelihood"
    lines = [
        f"fitted to {train:,} documents, S chosen by {how} on {chosen:,}, measured on {test:,}"
        + (" (predictions as printed)" if found.as_printed else ""),
        "",
        text_table(
            ["words", "for example", "number", "looked at", "occurrences", "in a document", "times if present"],
            [
                [
                    one.name,
                    ", ".join(_examples(one, snapshot)),
                    f"{len(one.words):,}",
                    f"{len(one.sample):,}",
                    f"{100 * one.share_of_occurrences:.1f} %",
                    f"{100 * (1 - found.empirical[one.name][0]):.3g} %",
                    number(_mean_if_present(found.empirical[one.name]), 2),
                ]
                for one in found.classes
            ],
            left=2,
        ),
        "",
        _table(found),
    ]
    if not found.as_printed and "multinomial" in found.fits and len(found.fits) > 1:
        lines += ["", _against_multinomial(found)]
    return "\n".join(lines)


def _mean_if_present(masses: np.ndarray) -> float:
    present = masses[1:].sum()
    return float(masses @ range(len(masses)) / present) if present else float("nan")


def _examples(one: WordClass, snapshot: Snapshot) -> list[str]:
    """The class's most frequent words among those looked at."""
    order = one.sample[(-snapshot.cf[one.sample]).argsort(kind="stable")]
    return [snapshot.term(int(word)) for word in order[:4]]


def _table(found: Burstiness) -> str:
    from sdretrieval.core.tables import number, text_table

    header = ["distribution", "S", "λ"]
    header += [f"KL {one.name}" for one in found.classes] + [f"if present, {one.name}" for one in found.classes]
    header += [] if found.as_printed else ["perplexity"]
    rows = []
    for name, fits in found.fits.items():
        scale, smoothing = found.scales[name], found.smoothings[name]
        row = [name, "-" if scale is None else f"{scale:.4g}", "-" if smoothing is None else f"{smoothing:g}"]
        row += [f"{fits[one.name].kl:.2e}" for one in found.classes]
        row += [number(fits[one.name].kl_present) for one in found.classes]
        row += [] if found.as_printed else [number(found.perplexity[name], 2)]
        rows.append(row)
    return text_table(header, rows)


def _against_multinomial(found: Burstiness) -> str:
    """Is the difference more than luck with these documents?"""
    from sdretrieval.core.tables import probability
    from sdretrieval.evaluate.significance import differences, paired_t

    base = found.per_document["multinomial"]
    lines = ["log-likelihood against the multinomial (nats per word, paired t over documents)"]
    for name, values in found.per_document.items():
        if name == "multinomial":
            continue
        gain = float((values - base).sum() / found.occurrences)
        p = probability(paired_t(differences(values, base)).p_value)
        lines.append(f"  {name:<10} {gain:+.4f}  p {'' if p.startswith('<') else '= '}{p}")
    return "\n".join(lines)


def as_dict(found: Burstiness, snapshot: Snapshot) -> dict[str, Any]:
    """Everything, as plain values; null for what is no number."""

    def plain(**values: float) -> dict[str, float | None]:
        return {name: float(value) if isfinite(value) else None for name, value in values.items()}

    return {
        "index": snapshot.name,
        "documents": dict(zip(("fitted", "chosen_on", "measured"), found.sizes, strict=True)),
        "choose_by": found.choose_by,
        "as_printed": found.as_printed,
        "classes": [
            {
                "name": one.name,
                "words": len(one.words),
                "looked_at": len(one.sample),
                "share_of_occurrences": one.share_of_occurrences,
                "empirical": found.empirical[one.name].tolist(),
            }
            for one in found.classes
        ],
        "distributions": [
            {
                "name": name,
                "scale": found.scales[name],
                "smoothing": found.smoothings[name],
                **plain(perplexity=found.perplexity[name]),
                "classes": {
                    one: {
                        **plain(kl=fit.kl, kl_present=fit.kl_present, log_likelihood=fit.log_likelihood),
                        "predicted": fit.masses.tolist(),
                    }
                    for one, fit in fits.items()
                },
                "trials": [plain(**vars(trial)) for trial in found.trials.get(name, [])],
            }
            for name, fits in found.fits.items()
        ],
    }
