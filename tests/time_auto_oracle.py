"""The automatic time prior once more, plain and slow: one document at a time, nothing shared with the package."""

from __future__ import annotations

from math import exp, log

import numpy as np

REACH = [15 * 60_000 * 2**level for level in range(24)]


def masses(centre: float, background: list[float]) -> list[float]:
    return [max(sum(abs(t - centre) <= h for t in background), 1) / len(background) for h in REACH]


def tower(t: float, centre: float, shares: list[float], mass: list[float]) -> float:
    return sum(s / m for s, m, h in zip(shares, mass, REACH, strict=True) if abs(t - centre) <= h)


def bursts(first: list[tuple[float, float]], background: list[float], chance: float = 0.05):
    """(evidence, function of a time and the place of a first document or None to log r_b, times surely in bursts).

    first: (rank, time)
    """
    shares = [1 / 24] * 24
    mass = [masses(t, background) for _, t in first]
    n = len(first)
    k = [[tower(first[i][1], first[j][1], shares, mass[j]) for j in range(n)] for i in range(n)]
    omega: list[float] = []
    evidence = 0.0
    for i, (rank, _) in enumerate(first):
        pi = 2 / (2 + rank)
        r = (1 + sum(omega[j] * k[i][j] for j in range(i))) / (1 + sum(omega))
        evidence += log(1 - pi + pi * r)
        omega.append(pi * r / (1 - pi + pi * r))
    total = sum(1 / rank for rank, _ in first)
    w = [1 / rank / total for rank, _ in first]
    c = []
    for i in range(n):
        f = sum(w[j] * k[i][j] for j in range(n) if j != i) / sum(w[j] for j in range(n) if j != i)
        c.append(chance * f / (1 - chance + chance * f))

    def log_r(t: float, me: int | None = None) -> float:
        lifted = sum(w[j] * c[j] * (tower(t, first[j][1], shares, mass[j]) - 1) for j in range(n) if j != me)
        return log(max(1 + lifted / (1 - (0 if me is None else w[me])), 0.02))

    return evidence, log_r, [t for (_, t), probability in zip(first, c, strict=True) if probability > 0.5]


def crowds(centres: list[float], background: list[float]) -> list[tuple[float, float]]:
    """First and last time of the widest window of at most 64 documents around each of some times."""
    found = []
    for centre in centres:
        fitting = [h for h in REACH if sum(abs(other - centre) <= h for other in background) <= 64]
        found += [(centre - fitting[-1], centre + fitting[-1])] if fitting else []
    return found


def nearness(
    first: list[tuple[float, float]],
    z: list[float],
    asked: float,
    background: list[float],
    others: list[float],
    shares: list[float] | None = None,
    intercept: float = -2.0,
):
    """(evidence, function of a time to log r_q); others: times of the documents ranked 51 to 1000"""
    shares = [0.5 / 24] * 24 if shares is None else shares
    start = sum(shares)
    relative, mass = [s / start for s in shares], competing(asked, background, others)
    near, far, evidence = start, 1 - start, 0.0
    for (_, t), x in zip(first, z, strict=True):
        pi, k = 1 / (1 + exp(-intercept - x)), tower(t, asked, relative, mass)
        r = (far + near * k) / (near + far)
        like = 1 - pi + pi * r
        evidence += log(like)
        omega, belongs = pi * r / like, near * k / (far + near * k)
        near, far = near + omega * belongs, far + omega * (1 - belongs)
    share = near / (near + far)
    return evidence, lambda t: log(max(1 - share + share * tower(t, asked, relative, mass), 0.02))


def competing(asked: float, background: list[float], others: list[float]) -> list[float]:
    return [
        (sum(abs(t - asked) <= h for t in others) + 200 * m) / (len(others) + 200)
        for h, m in zip(REACH, masses(asked, background), strict=True)
    ]


Seen = tuple[list[tuple[float, float]], list[float], float, list[float], list[float]]  # the arguments of nearness


def habit(topics: list[Seen]) -> tuple[list[float], float]:
    """Shares and intercept learnt from topics."""
    z = np.array([x for _, z, *_ in topics for x in z])
    # 1/m_l where a document is in the window l, a row each
    inside = []
    for first, _, asked, *rest in topics:
        mass = competing(asked, *rest)
        inside += [[1 / m if abs(t - asked) <= h else 0.0 for m, h in zip(mass, REACH, strict=True)] for _, t in first]
    found = [(*fit(1 / (1 + np.exp(-a - z)), np.array(inside)), float(a)) for a in range(-7, 3)]
    _, shares, intercept = max(found, key=lambda item: item[0])
    return shares, intercept


def fit(pi: np.ndarray, inside: np.ndarray) -> tuple[float, list[float]]:
    """Likelihood and shares, by EM."""
    shares = start = np.full(24, 1 / 25)
    for _ in range(40):
        mixed = 1 - shares.sum() + inside @ shares
        like = 1 - pi + pi * mixed
        shares = (start + (pi / like) @ inside * shares) / (1 + (pi * mixed / like).sum())
    return float(np.log(1 - pi + pi * (1 - shares.sum() + inside @ shares)).sum()), shares.tolist()


def learnt_evidence(topics: list[Seen]) -> float:
    """Of either half of the topics, by the habit of the other."""
    halves = topics[::2], topics[1::2]
    habits = [habit(half) for half in halves]
    return sum(nearness(*t, *found)[0] for half, found in zip(halves, habits[::-1], strict=True) for t in half)


def belief(evidence: float, doubt: float = 4.0) -> float:
    beyond = max(0.0, evidence - log(20))
    return beyond / (beyond + doubt)
