"""A drift analysis as JSON and CSV."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from sdretrieval.files import atomic_writer
from sdretrieval.temporal.bandwidth import LikelihoodChoice
from sdretrieval.temporal.drift import DriftAnalysis
from sdretrieval.temporal.timeline import DAY
from sdretrieval.times import format_time


def _time(ms: float) -> str:
    return format_time(round(ms))


def _days(ms: float) -> float | str:
    return ms / DAY if isfinite(ms) else "inf"


def _number(value: float) -> float | None:
    """JSON has no NaN: where nothing is known, say null."""
    return float(value) if isfinite(value) else None


def as_dict(analysis: DriftAnalysis, term: Callable[[int], str]) -> dict[str, Any]:
    """All of the analysis in plain values; lengths of time in days, times in ISO 8601."""
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
        "fastest": [
            {
                "word": term(word.term),
                "occurrences": word.occurrences,
                "gain_bits": word.gain_bits,
                "mean": word.mean,
                "peak": word.peak,
                "peak_time": _time(word.peak_time),
            }
            for word in analysis.fastest
        ],
        "confidence": analysis.level,
        "times": [_time(t) for t in analysis.grid],
        "documents_over_time": analysis.documents.tolist(),
        "words_over_time": analysis.words.tolist(),
        "curves": [
            {
                "word": term(curve.term),
                "design_effect": [_number(x) for x in curve.design_effect],
                "frequency": [_number(x) for x in curve.frequency],
                "lower": [_number(x) for x in curve.lower],
                "upper": [_number(x) for x in curve.upper],
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


def write_tables(analysis: DriftAnalysis, term: Callable[[int], str], folder: Path) -> list[Path]:
    """``drift.json`` with everything, and one CSV file for each of its tables; the files written."""
    path = folder / "drift.json"
    with atomic_writer(path) as stream:
        json.dump(as_dict(analysis, term), stream, ensure_ascii=False, indent=1)
        stream.write("\n")
    written = [path]
    curves = (
        (_time(t), term(curve.term), _cell(curve.frequency[i]), _cell(curve.lower[i]), _cell(curve.upper[i]))
        for curve in analysis.curves
        for i, t in enumerate(analysis.grid)
    )
    volume = zip(map(_time, analysis.grid), analysis.documents, analysis.words, strict=True)
    likelihood = (
        (scenario, _days(h), repr(float(score)))
        for scenario, choice in (("offline", analysis.offline), ("online", analysis.online))
        for h, score in zip(choice.bandwidths, choice.scores, strict=True)
    )
    fastest = (
        (term(w.term), w.occurrences, _cell(w.gain_bits), _cell(w.mean), _cell(w.peak), _time(w.peak_time))
        for w in analysis.fastest
    )
    tables: list[tuple[str, Sequence[str], Iterable[tuple]]] = [
        ("words", ("time", "word", "frequency", "lower", "upper"), curves),
        ("volume", ("time", "documents", "words"), volume),
        ("likelihood", ("scenario", "bandwidth_days", "nats_per_word"), likelihood),
        ("fastest", ("word", "occurrences", "gain_bits", "mean", "peak", "peak_time"), fastest),
    ]
    for name, header, rows in tables:
        path = folder / f"{name}.csv"
        with atomic_writer(path) as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(header)
            writer.writerows(rows)
        written.append(path)
    return written


def _cell(value: float) -> str:
    return f"{value:.6g}" if isfinite(value) else ""
