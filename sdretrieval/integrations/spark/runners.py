"""Where requests are answered: in this process, one shard after the other, or on Spark, a task for each shard."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sdretrieval.errors import SdretrievalError
from sdretrieval.integrations.spark.shards import OPENED, Collection, OnDisk, Remote, Shard


class Here:
    """In this process. For collections that are not worth a cluster, and for tests."""

    def __init__(self, collection: Collection) -> None:
        self.collection = collection
        self._shards: dict[int, Shard] = {}

    def shard(self, number: int) -> Shard:
        if number not in self._shards:
            self._shards[number] = Shard(self.collection.snapshot(number), self.collection.totals, number)
        return self._shards[number]

    def ask(self, request: Callable, shared: Any, own: Mapping[int, Any] | None = None) -> list[tuple[int, Any]]:
        """``request(shard, shared)`` of all shards, or ``request(shard, shared, own[n])`` of those in ``own``."""
        if own is None:
            return [(n, request(self.shard(n), shared)) for n in range(self.collection.n_shards)]
        return [(n, request(self.shard(n), shared, mine)) for n, mine in own.items()]

    def reduce(self, request: Callable, shared: Any, add: Callable, *, with_totals: bool = True) -> Any:
        """The answers of all shards added up; ``with_totals=False`` before there are any."""
        result = None
        for number in range(self.collection.n_shards):
            shard = self.shard(number) if with_totals else Shard(self.collection.snapshot(number), None, number)  # type: ignore[arg-type]
            answer = request(shard, shared)
            result = answer if result is None else add(result, answer)
        return result


class Failure:
    """An error that trying again would not mend, on its way to the driver: a value, not a crash of the task."""

    def __init__(self, error: SdretrievalError) -> None:
        self.error = error


class OnSpark:
    """On Spark: a task for each shard. What all tasks share is broadcast."""

    def __init__(self, collection: OnDisk, context: Any) -> None:
        self.collection, self.context = collection, context
        # What lies at an address travels, with its manifest and the means to fetch it, once to each machine.
        self._opener = None
        if isinstance(collection, Remote):
            self._opener = _Value(context.broadcast(collection.for_workers()))

    def ask(self, request: Callable, shared: Any, own: Mapping[int, Any] | None = None) -> list[tuple[int, Any]]:
        items = [(n,) for n in range(self.collection.n_shards)] if own is None else list(own.items())
        if not items:
            return []
        sent = self.context.broadcast(shared)
        try:
            answers = self._tasks(items, request, sent).collect()
        finally:
            sent.unpersist(blocking=False)
        return [(number, _unwrapped(answer)) for number, answer in answers]

    def reduce(self, request: Callable, shared: Any, add: Callable, *, with_totals: bool = True) -> Any:
        """Answers added up pair by pair on the workers, so that the driver sees one sum."""
        items = [(n,) for n in range(self.collection.n_shards)]
        sent = self.context.broadcast(shared)
        try:
            answers = self._tasks(items, request, sent, with_totals=with_totals).map(_second)
            return _unwrapped(answers.treeReduce(_Adding(add)))
        finally:
            sent.unpersist(blocking=False)

    def warm(self) -> None:
        """Have workers start, and open their shards, while the driver does something else."""
        import threading

        from sdretrieval.integrations.spark import requests

        def work() -> None:
            with contextlib.suppress(Exception):  # whatever is wrong will be said by the first real request
                self.ask(requests.ready, None)

        threading.Thread(target=work, name="warm", daemon=True).start()

    def stream(self, request: Callable, shared: Any) -> Iterable[tuple[int, Any]]:
        """Answers that are sequences, piece by piece, a shard at a time: never more than one shard's on the driver."""
        sent = self.context.broadcast(shared)
        items = [(n,) for n in range(self.collection.n_shards)]
        for number, answer in self._tasks(items, request, sent).flatMap(_pieces).toLocalIterator():
            yield number, _unwrapped(answer)

    def _tasks(self, items: list[tuple], request: Callable, sent: Any, *, with_totals: bool = True) -> Any:
        place, fingerprint = self.collection.address, self.collection.fingerprint
        task = _Task(place, fingerprint, request, sent, with_totals, self._opener)
        return self.context.parallelize(items, len(items)).map(task)


class _Task:
    """One request to one shard, in a worker's process. The shard stays open there for the next request."""

    def __init__(
        self, place: str, fingerprint: str, request: Callable, sent: Any, with_totals: bool, opener: _Value | None
    ) -> None:
        self.place, self.fingerprint, self.request = place, fingerprint, request
        self.sent, self.with_totals, self.opener = sent, with_totals, opener

    def __call__(self, item: tuple) -> tuple[int, Any]:
        number, *own = item
        try:
            shard = OPENED.get(self.place, self.fingerprint, number, with_totals=self.with_totals, opener=self.opener)
            return number, self.request(shard, self.sent.value, *own)
        except SdretrievalError as error:
            return number, Failure(error)


class _Value:
    """What was broadcast, as a function that can travel."""

    def __init__(self, sent: Any) -> None:
        self.sent = sent

    def __call__(self) -> Any:
        return self.sent.value


class _Adding:
    def __init__(self, add: Callable) -> None:
        self.add = add

    def __call__(self, a: Any, b: Any) -> Any:
        if isinstance(a, Failure) or isinstance(b, Failure):
            return a if isinstance(a, Failure) else b
        return self.add(a, b)


def _second(pair: tuple[int, Any]) -> Any:
    return pair[1]


def _pieces(pair: tuple[int, Any]) -> list[tuple[int, Any]]:
    number, answer = pair
    return [pair] if isinstance(answer, Failure) else [(number, piece) for piece in answer]


def _unwrapped(answer: Any) -> Any:
    if isinstance(answer, Failure):
        raise answer.error
    return answer
