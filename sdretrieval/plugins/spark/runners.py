"""Requests are answered in tasks on Spark, one for each shard; what is wrong there is said here."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from sdretrieval.core.errors import IndexProblem, InputError, ParameterError, SdretrievalError
from sdretrieval.plugins.spark.shards import Collection, open_shard
from sdretrieval.plugins.spark.storage import StorageProblem

FINAL = (IndexProblem, InputError, ParameterError)  # wrong on every machine


class Failure:
    """An error that trying again would not mend, on its way to the driver: a value, not a crash of the task."""

    def __init__(self, error: SdretrievalError) -> None:
        self.error = error


class WorkerProblem(Exception):
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


def failure_of(error: SdretrievalError | OSError) -> Failure:
    """What is wrong with files and settings goes to the driver; what is wrong with a machine leaves the task."""
    is_lost = isinstance(error, StorageProblem) and error.missing
    if isinstance(error, SdretrievalError) and (is_lost or isinstance(error, FINAL)):
        return Failure(error)
    raise WorkerProblem(error) from None


def unwrapped(answer: Any) -> Any:
    if isinstance(answer, Failure):
        raise answer.error
    return answer


@contextlib.contextmanager
def plain_errors() -> Iterator[None]:
    """Around jobs of Spark: what left a task for good, as the error that it was there."""
    try:
        yield
    except SdretrievalError:
        raise
    except Exception as error:
        found = re.search(r"\bWorkerProblem: (\{.*\})", str(error))
        if found is None:
            raise
        told = json.loads(found[1])
        raise SdretrievalError(told["message"], remedy=told["remedy"]) from None


class OnSpark:
    """A task for each shard. The collection, and what all tasks share, are sent to each machine once."""

    def __init__(self, collection: Collection, context: Any) -> None:
        self.collection, self.context = collection, context
        self._collections: dict[bool, Any] = {}

    def ask(self, request: Callable, shared: Any, own: Mapping[int, Any]) -> list[tuple[int, Any]]:
        """``request(shard, shared, own[n])`` of the shards in ``own``, with their numbers."""
        if not own:
            return []
        with self._tasks(request, shared, list(own.items())) as tasks:
            return [(number, unwrapped(answer)) for number, answer in tasks.collect()]

    def reduce(self, request: Callable, shared: Any) -> Any:
        """``request(shard, shared)`` of all shards, added up (``plus``) on the workers: the driver sees few sums."""
        with self._tasks(request, shared) as tasks:
            return unwrapped(tasks.values().treeReduce(_plus))

    def stream(self, request: Callable, shared: Any) -> Iterable[tuple[int, Any]]:
        """Answers that are sequences, piece by piece, a shard at a time: never more than one shard's on the driver."""
        with self._tasks(request, shared) as tasks:
            for number, answer in tasks.flatMap(_pieces).toLocalIterator():
                yield number, unwrapped(answer)

    @contextlib.contextmanager
    def _tasks(self, request: Callable, shared: Any, items: list[tuple] | None = None) -> Iterator[Any]:
        """Pairs of shards' numbers and their answers, yet to be asked for."""
        collection, sent = self._sent(), self.context.broadcast(shared)

        def answer(item: tuple) -> tuple[int, Any]:
            number, *own = item
            try:
                return number, request(open_shard(collection.value, number), sent.value, *own)
            except (SdretrievalError, OSError) as error:
                return number, failure_of(error)

        items = items or [(number,) for number in range(self.collection.n_shards)]
        is_interrupted = False
        try:
            with plain_errors():
                yield self.context.parallelize(items, len(items)).map(answer)
        except KeyboardInterrupt:
            is_interrupted = True  # Spark is about to end, with all it has been sent; or is gone
            raise
        finally:
            if not is_interrupted:
                with contextlib.suppress(Exception):  # Java has gone
                    sent.destroy()

    def _sent(self) -> Any:
        """The collection before there are sums over it, or after."""
        key = self.collection.has_totals
        if key not in self._collections:
            self._collections[key] = self.context.broadcast(self.collection.for_workers())
        return self._collections[key]


def _plus(a: Any, b: Any) -> Any:
    failure = next((part for part in (a, b) if isinstance(part, Failure)), None)
    return failure or plus(a, b)


def plus(a: Any, b: Any) -> Any:
    """Of what shards answer: sums of their own kind, or lists of them."""
    return [plus(x, y) for x, y in zip(a, b, strict=True)] if isinstance(a, list) else a.plus(b)


def _pieces(pair: tuple[int, Any]) -> list[tuple[int, Any]]:
    number, answer = pair
    return [pair] if isinstance(answer, Failure) else [(number, piece) for piece in answer]
