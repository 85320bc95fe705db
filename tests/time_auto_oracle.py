"""The automatic time prior once more, plain and slow: one document at a time, nothing shared with the package."""

from __future__ import annotations

from math import exp, log

REACH = [15 * 60_000 * 2**level for level in range(24)]


def masses(centre: float, background: list[float]) -> list[float]:
    return [max(sum(abs(t - centre) <= h for t in background), 1) / len(background) for h in REACH]


def tower(t: float, centre: float, shares: list[float], mass: list[float]) -> float:
    return sum(s / m for s, m, h in zip(shares, mass, REACH, strict=True) if abs(t - centre) <= h)


def bursts(first: list[tuple[float, float]], background: list[float], chance: float = 0.05):
    """(evidence, function of a time and the place of a first document or None to log r_b); first: (rank, time)."""
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

    return evidence, log_r


def nearness(
    first: list[tuple[float, float]],
    asked: float,
    background: list[float],
    others: list[float],
    shares: list[float] | None = None,
    common: float = 1 / 21,
):
    """(evidence, probability, function of a time to log r_q); others: times of the documents ranked 51 to 1000"""
    shares = [0.2 / 24] * 24 if shares is None else shares
    start = sum(shares)
    relative, mass = [s / start for s in shares], competing(asked, background, others)
    near, far, evidence = start, 1 - start, 0.0
    for rank, t in first:
        pi, k = 2 / (2 + rank), tower(t, asked, relative, mass)
        r = (far + near * k) / (near + far)
        like = 1 - pi + pi * r
        evidence += log(like)
        omega, belongs = pi * r / like, near * k / (far + near * k)
        near, far = near + omega * belongs, far + omega * (1 - belongs)
    share = near / (near + far)
    odds = common / (1 - common) * exp(evidence)
    return evidence, odds / (1 + odds), lambda t: log(max(1 - share + share * tower(t, asked, relative, mass), 0.02))


def competing(asked: float, background: list[float], others: list[float]) -> list[float]:
    return [
        (sum(abs(t - asked) <= h for t in others) + 200 * m) / (len(others) + 200)
        for h, m in zip(REACH, masses(asked, background), strict=True)
    ]


def habit(topics: list[tuple[list[tuple[float, float]], float, list[float], list[float]]]) -> tuple[list[float], float]:
    """Shares and how common they are, learnt from topics (first documents, time of asking, background, others)."""
    start = [0.2 / 24] * 24
    shares = list(start)
    for _ in range(15):
        counts, relevant = [100 * s for s in start], 100.0
        for first, asked, background, others in topics:
            mass = competing(asked, background, others)
            for rank, t in first:
                pi = 2 / (2 + rank)
                parts = [s / m if abs(t - asked) <= h else 0.0 for s, m, h in zip(shares, mass, REACH, strict=True)]
                mixed = 1 - sum(shares) + sum(parts)
                like = 1 - pi + pi * mixed
                relevant += pi * mixed / like
                counts = [c + pi * p / like for c, p in zip(counts, parts, strict=True)]
        shares = [c / relevant for c in counts]
    common = 0.5
    evidence = [nearness(*topic, shares)[0] for topic in topics]
    for _ in range(150):
        odds = [common / (1 - common) * exp(e) for e in evidence]
        common = (1 / 21 + sum(o / (1 + o) for o in odds)) / (1 + len(topics))
    return shares, common


def belief(evidence: float, doubt: float = 4.0) -> float:
    beyond = max(0.0, evidence - log(20))
    return beyond / (beyond + doubt)
