"""SSL-E on real posts: the shape of the paper's Table 2 on eight months of two mailing lists."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from sdretrieval.learn.evolving import SSL, SSLE
from sdretrieval.learn.evolving.frames import auc, choose_labelled


@pytest.mark.shared
def test_history_helps_on_real_posts(shared_data: Path) -> None:
    """Ten labels a month and hardly any graph (γ_A = .1, γ_I = 10): each month's AUC gains by the months before it."""
    wanted = {f"2010-{month:02d}" for month in range(1, 9)}
    texts, lists, months = [], [], []
    with gzip.open(shared_data / "rlists" / "docs.jsonl.gz", "rt", encoding="utf-8") as stream:
        for line in stream:
            if not re.search(r'"frame": "2010-0[1-8]"', line):
                continue
            record = json.loads(line)
            if record["frame"] in wanted and record["labels"][0] in ("r-devel", "r-sig-geo"):
                texts.append(record["contents"])
                lists.append(record["labels"][0])
                months.append(record["frame"])
    X = TfidfVectorizer(stop_words="english", min_df=2, sublinear_tf=True).fit_transform(texts)
    truth, frames = np.array(lists), np.array(months)
    shown = choose_labelled(truth, frames, per_frame=10, seed=0)
    labels = np.where(shown, truth, "")

    def areas(model) -> np.ndarray:
        scores = model.fit(X, labels, frames=frames).decision_function(X, frames=frames)
        rest = ~shown
        return np.array(
            [auc(truth[rest & (frames == t)] == "r-sig-geo", scores[rest & (frames == t)]) for t in sorted(wanted)]
        )

    alone, frame, history = (
        areas(model(gamma_A=0.1, gamma_I=10.0, **more))
        for model, more in ((SSL, {}), (SSLE, {}), (SSLE, {"representer": "history"}))
    )
    assert frame[0] == pytest.approx(alone[0], abs=1e-9)  # the first month has no history
    assert frame[3:].mean() > alone[3:].mean() + 0.03
    assert history[3:].mean() > frame[3:].mean()
