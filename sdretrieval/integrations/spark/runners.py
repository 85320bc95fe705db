"""Where requests are answered: in this process, one shard after the other, or in tasks on Spark."""

from __future__ import annotations

import contextlib
import json
import pickle
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

from sdretrieval.errors import IndexProblem, InputError, ParameterError, SdretrievalError
from sdretrieval.integrations.spark import at_once
from sdretrieval.integrations.spark.shards import OPENED, Collection, OnDisk, Remote, Shard
from sdretrieval.integrations.spark.storage import StorageProblem

CARRIED = 1 << 19  # bytes; a broadcast is worth it for more
_NO_NAMES = "spark.rdd.scope.noOverride"


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

    def cancel(self) -> None:
        """One request is waited for."""

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


class Passing(Exception):
    """An error that another machine, or another time, may not have: it leaves the task, and Spark tries again.

    Of what is raised in a worker, the driver gets the text of the traceback: so the message is one line to be found.
    """

    def __init__(self, error: SdretrievalError | OSError) -> None:
        if isinstance(error, OSError):
            error = SdretrievalError(
                f"{error.filename or 'a worker'}: {error.strerror or error}",
                remedy="Is it mounted, with room and the same rights, on all workers?",
            )
        super().__init__(json.dumps({"message": error.message, "remedy": error.remedy}))


def failed(error: SdretrievalError | OSError) -> Failure:
    """What is wrong with files and settings goes to the driver; what is wrong with a machine leaves the task."""
    is_lost = isinstance(error, StorageProblem) and error.missing
    if isinstance(error, SdretrievalError) and (is_lost or isinstance(error, _FINAL)):
        return Failure(error)
    raise Passing(error) from None


_FINAL = (IndexProblem, InputError, ParameterError)


@contextlib.contextmanager
def told_plainly() -> Iterator[None]:
    """Around jobs of Spark: what left a task for good, as the error that it was there."""
    try:
        yield
    except SdretrievalError:
        raise
    except Exception as error:
        found = re.search(r"\bPassing: (\{.*\})", str(error))
        if found is None:
            raise
        told = json.loads(found[1])
        raise SdretrievalError(told["message"], remedy=told["remedy"]) from None


class OnSpark:
    """On Spark: a task for each shard; on this machine alone, one for each core. What all tasks share is broadcast, or
    goes along with them where it is small."""

    def __init__(self, collection: OnDisk, context: Any) -> None:
        self.collection, self.context = collection, context
        self._at_once = at_once(context.master)
        self._openers: dict[bool, _Value] = {}
        self._tag, self._is_cancelled = f"sdretrieval-{uuid.uuid4().hex}", False

    def ask(self, request: Callable, shared: Any, own: Mapping[int, Any] | None = None) -> list[tuple[int, Any]]:
        items = [(n,) for n in range(self.collection.n_shards)] if own is None else list(own.items())
        if not items:
            return []
        if self._is_cancelled:
            raise SdretrievalError("cancelled")
        with self._sent(shared) as sent, told_plainly(), self._properties():
            answers = self._tasks(items, request, sent, at_once=self._at_once).collect()
        return [(number, _unwrapped(answer)) for number, answer in answers]

    def cancel(self) -> None:
        """End what is under way, so that nobody waits for it; and ask for nothing more."""
        self._is_cancelled = True
        self.context.cancelJobsWithTag(self._tag)

    def reduce(self, request: Callable, shared: Any, add: Callable, *, with_totals: bool = True) -> Any:
        """Answers added up pair by pair on the workers, so that the driver sees one sum."""
        items = [(n,) for n in range(self.collection.n_shards)]
        with self._sent(shared) as sent, told_plainly():
            answers = self._tasks(items, request, sent, with_totals=with_totals).map(_second)
            return _unwrapped(answers.treeReduce(_Adding(add)))

    def stream(self, request: Callable, shared: Any) -> Iterable[tuple[int, Any]]:
        """Answers that are sequences, piece by piece, a shard at a time: never more than one shard's on the driver."""
        sent = self.context.broadcast(shared)
        items = [(n,) for n in range(self.collection.n_shards)]
        with told_plainly():
            for number, answer in self._tasks(items, request, sent).flatMap(_pieces).toLocalIterator():
                yield number, _unwrapped(answer)

    @contextlib.contextmanager
    def _properties(self) -> Iterator[None]:
        """Of the jobs of this thread."""
        self.context.addJobTag(self._tag)
        # Names of operations for Spark's web page, which it would write as JSON: a tenth of a second to begin with.
        self.context.setLocalProperty(_NO_NAMES, "true")
        try:
            yield
        finally:
            with contextlib.suppress(Exception):  # Java has gone
                self.context.setLocalProperty(_NO_NAMES, None)
                self.context.removeJobTag(self._tag)

    @contextlib.contextmanager
    def _sent(self, shared: Any) -> Iterator[Any]:
        """What has a ``value`` in every task."""
        carried = _Carried(shared)
        if len(carried.pickled) <= CARRIED:
            yield carried
            return
        sent = self.context.broadcast(carried)
        try:
            yield _Broadcast(sent)
        finally:
            sent.unpersist(blocking=False)

    def _tasks(
        self, items: list[tuple], request: Callable, sent: Any, *, with_totals: bool = True, at_once: int | None = None
    ) -> Any:
        place, fingerprint = self.collection.address, self.collection.fingerprint
        task = _Task(place, fingerprint, request, sent, with_totals, self._opener(with_totals))
        n, groups = len(items), min(len(items), at_once or len(items))
        dealt = [items[k * n // groups : (k + 1) * n // groups] for k in range(groups)]
        return self.context.parallelize(dealt, groups).flatMap(_same).map(task)

    def _opener(self, with_totals: bool) -> _Value | None:
        """What lies at an address travels, with its manifest and the means to fetch it, once to each machine."""
        if isinstance(self.collection, Remote) and with_totals not in self._openers:
            sent = self.collection.for_workers(with_totals=with_totals)
            self._openers[with_totals] = _Value(self.context.broadcast(sent))
        return self._openers.get(with_totals)


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
        except (SdretrievalError, OSError) as error:
            return number, failed(error)


class _Carried:
    """What goes along with the tasks themselves, which Spark sends to each machine once."""

    def __init__(self, value: Any) -> None:
        self.pickled = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)

    @cached_property
    def value(self) -> Any:
        pickled, self.pickled = self.pickled, b""  # not both in memory: it may be a background, of many megabytes
        return pickle.loads(pickled)


class _Broadcast:
    """The same, fetched by each worker once."""

    def __init__(self, sent: Any) -> None:
        self.sent = sent

    @property
    def value(self) -> Any:
        return self.sent.value.value


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


def _same(group: list[tuple]) -> list[tuple]:
    return group


def _second(pair: tuple[int, Any]) -> Any:
    return pair[1]


def _pieces(pair: tuple[int, Any]) -> list[tuple[int, Any]]:
    number, answer = pair
    return [pair] if isinstance(answer, Failure) else [(number, piece) for piece in answer]


def _unwrapped(answer: Any) -> Any:
    if isinstance(answer, Failure):
        raise answer.error
    return answer
