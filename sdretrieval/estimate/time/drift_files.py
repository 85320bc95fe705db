"""A drift analysis as JSON and CSV."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from sdretrieval.core.files import atomic_writer
from sdretrieval.core.timeline import DAY
from sdretrieval.core.times import format_time
from sdretrieval.estimate.time.bandwidth import LikelihoodChoice
from sdretrieval.estimate.time.drift import DriftAnalysis

FASTEST = ("word", "occurrences", "gain_bits", "mean", "peak", "peak_time")
Term = Callable[[int], str]


def _time(ms: float) -> str:
    return format_time(round(ms))


def _days(ms: float) -> float | str:
    return ms / DAY if isfinite(ms) else "inf"


def _fastest(analysis: DriftAnalysis, term: Term) -> list[tuple]:
    return [
        (term(word.term), word.occurrences, word.gain_bits, word.mean, word.peak, _time(word.peak_time))
        for word in analysis.fastest
    ]


def as_dict(analysis: DriftAnalysis, term: Term) -> dict[str, Any]:
    """All of the analysis in plain values; lengths of time in days, times in ISO 8601, null where nothing is known."""
    return {
        "documents": {"dated": analysis.dated, "undated": analysis.undated},
        "first": _time(analysis.first),
        "last": _time(analysis.last),
        "kernel": analysis.kernel.name,
        "bandwidth_days": _days(analysis.bandwidth),
        "bandwidth_chosen_by": "ten-fold held-out likelihood" if analysis.chosen else "given",
        "resolution_days": analysis.resolution / DAY,
        "held_out": {
            "vocabulary": analysis.likelihood_words,
            "unit": "nats per word",
            "global": analysis.global_score,
            "extreme_local": analysis.extreme_local,
            "offline": _scores(analysis.offline),
            "online": _scores(analysis.online),
        },
        "fastest": [dict(zip(FASTEST, row, strict=True)) for row in _fastest(analysis, term)],
        "confidence": analysis.level,
        "times": [_time(t) for t in analysis.grid],
        "documents_over_time": analysis.documents.tolist(),
        "words_over_time": analysis.words.tolist(),
        "curves": [
            {
                "word": term(curve.term),
                **{
                    name: [float(x) if isfinite(x) else None for x in getattr(curve, name)]
                    for name in ("design_effect", "frequency", "lower", "upper")
                },
            }
            for curve in analysis.curves
        ],
    }


def _scores(choice: LikelihoodChoice) -> dict[str, Any]:
    return {
        "best_days": _days(choice.bandwidth),
        "best": float(choice.scores.max()),
        "bandwidths_days": [_days(h) for h in choice.bandwidths],
        "scores": choice.scores.tolist(),
    }


def write_tables(analysis: DriftAnalysis, term: Term, folder: Path) -> list[Path]:
    """``drift.json`` with everything, and one CSV file for each of its tables; the files written."""
    written = [folder / "drift.json"]
    with atomic_writer(written[0]) as stream:
        json.dump(as_dict(analysis, term), stream, ensure_ascii=False, indent=1)
        stream.write("\n")
    times = [_time(t) for t in analysis.grid]
    tables: dict[str, tuple[Sequence[str], Iterable[tuple]]] = {
        "words": (
            ("time", "word", "frequency", "lower", "upper"),
            (
                (time, term(curve.term), *row)
                for curve in analysis.curves
                for time, *row in zip(times, curve.frequency, curve.lower, curve.upper, strict=True)
            ),
        ),
        "volume": (("time", "documents", "words"), zip(times, analysis.documents, analysis.words, strict=True)),
        "likelihood": (
            ("scenario", "bandwidth_days", "nats_per_word"),
            (
                (scenario, str(_days(h)), repr(float(score)))
                for scenario, choice in (("offline", analysis.offline), ("online", analysis.online))
                for h, score in zip(choice.bandwidths, choice.scores, strict=True)
            ),
        ),
        "fastest": (FASTEST, _fastest(analysis, term)),
    }
    for name, (header, rows) in tables.items():
        written.append(folder / f"{name}.csv")
        with atomic_writer(written[-1]) as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(header)
            writer.writerows([_cell(value) for value in row] for row in rows)
    return written


def _cell(value: Any) -> Any:
    """Six digits of a number are enough for a table; nothing where nothing is known."""
    if not isinstance(value, float | np.floating):
        return value
    return f"{value:.6g}" if isfinite(value) else ""
