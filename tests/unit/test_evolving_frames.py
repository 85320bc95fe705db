"""Documents to frames, and which are labelled."""

from __future__ import annotations

import numpy as np
import pytest

from sdretrieval.core.errors import ParameterError
from sdretrieval.core.times import UNDATED, parse_time
from sdretrieval.learn.evolving.frames import choose_labelled, frame_names, in_order

TIMES = [parse_time(text) for text in ("2011-12-31T23:59:59Z", "2012-01-01", "2012-01-02T01:30Z", "1969-07-20")]


@pytest.mark.parametrize(
    ("frame", "names"),
    [
        ("year", ["2011", "2012", "2012", "1969"]),
        ("month", ["2011-12", "2012-01", "2012-01", "1969-07"]),
        ("day", ["2011-12-31", "2012-01-01", "2012-01-02", "1969-07-20"]),
        ("hour", ["2011-12-31T23", "2012-01-01T00", "2012-01-02T01", "1969-07-20T00"]),
        ("week", ["2011-12-26", "2011-12-26", "2012-01-02", "1969-07-14"]),  # Mondays, by the calendar
        ("10d", ["2011-12-22T00:00:00Z", "2012-01-01T00:00:00Z", "2012-01-01T00:00:00Z", "1969-07-15T00:00:00Z"]),
    ],
)
def test_names(frame: str, names: list[str]) -> None:
    assert frame_names(TIMES, frame).tolist() == names


def test_undated_documents_belong_to_no_frame() -> None:
    names = frame_names(np.array([TIMES[0], UNDATED]))
    assert names.tolist() == ["2011-12", ""]
    assert [(str(name), rows.tolist()) for name, rows in in_order(names)] == [("2011-12", [0])]


@pytest.mark.parametrize("frame", ["inf", "fortnight", "0", "-3d"])
def test_what_is_no_frame(frame: str) -> None:
    with pytest.raises(ParameterError):
        frame_names(TIMES, frame)


def test_so_many_of_each_frame_and_every_class() -> None:
    rng = np.random.default_rng(0)
    frames = np.repeat(np.arange(50), 40)
    y = np.where(rng.random(2000) < 0.03, "rare", "common")
    chosen = choose_labelled(y, frames, per_frame=10, seed=1)
    for t in range(50):
        here = frames == t
        assert chosen[here].sum() == 10
        assert set(y[here & chosen]) == set(y[here])


def test_a_share_of_each_frame() -> None:
    frames = np.repeat([0, 1], [100, 37])
    chosen = choose_labelled(np.zeros(137), frames, fraction=0.1)
    assert [int(chosen[frames == t].sum()) for t in (0, 1)] == [10, 4]


def test_small_frames_and_seeds() -> None:
    y = np.array(["a", "b", "c"])
    assert choose_labelled(y, [0, 0, 0], per_frame=10).all()
    assert choose_labelled(y, [0, 0, 0], per_frame=2).sum() == 2
    y, frames = np.zeros(100), np.zeros(100)
    one, same, other = (choose_labelled(y, frames, per_frame=10, seed=s) for s in (1, 1, 2))
    assert (one == same).all() and (one != other).any()


@pytest.mark.parametrize("how", [{}, {"per_frame": 1, "fraction": 0.1}, {"per_frame": 0}, {"fraction": 1.5}])
def test_bad_choices(how: dict) -> None:
    with pytest.raises(ParameterError):
        choose_labelled([0, 1], [0, 0], **how)
