"""Inner loops, compiled by numba when they are first called; run as plain Python where that is sooner done.

Importing numba and loading its first loop take a second, which most commands need not pay, nor a single query of a
small collection (:func:`plain_loops`): it runs the same source, so that sums have the same order and the same bits.
numba's cache outlives a power cut: what is torn is compiled anew, and is no error for ever.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, update_wrapper
from typing import Any

__all__ = ["Compiled", "ask_ahead", "njit", "plain_loops"]

_lock = threading.RLock()
_is_plain = False


class Compiled:
    """A function that numba compiles, or loads from its cache, at its first call."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self.py_func, self.targetoptions = function, options  # by these names numba looks for what it is to inline
        self._dispatcher: Any = None
        update_wrapper(self, function)

    def __call__(self, *given: Any) -> Any:
        if _is_plain:
            return self.py_func(*given)
        return (self._dispatcher or self.dispatcher())(*given)

    def dispatcher(self) -> Any:
        """numba's own."""
        with _lock:
            if self._dispatcher is None:
                self._dispatcher = _numba_njit()(**self.targetoptions)(self.py_func)
            return self._dispatcher


class AskAhead:
    """``ask_ahead(array, i)`` in a loop: array[i] is read soon, and memory may begin to bring it. Changes no result."""

    def __call__(self, array: Any, i: int) -> None:
        """Where Python runs the loop there is nothing to gain."""


ask_ahead = AskAhead()


def njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """numba's ``njit``, later."""
    return lambda function: Compiled(function, options)


@contextmanager
def plain_loops(wanted: bool = True) -> Iterator[None]:
    """Inside, where ``wanted``, loops are run by Python: the same results, sooner for little work."""
    global _is_plain
    before, _is_plain = _is_plain, wanted
    try:
        yield
    finally:
        _is_plain = before


@cache
def _numba_njit() -> Any:
    from numba import njit, types  # takes a third of a second
    from numba.core.caching import IndexDataCacheFile
    from numba.extending import typeof_impl

    load = IndexDataCacheFile.load

    def load_or_forget(self: IndexDataCacheFile, key: Any) -> Any:
        try:
            return load(self, key)
        except Exception:  # a pickle that is cut short may raise anything
            with suppress(OSError):
                self.flush()
            return None

    IndexDataCacheFile.load = load_or_forget  # type: ignore[method-assign]
    typeof_impl.register(Compiled, lambda function, _: types.Dispatcher(function.dispatcher()))  # where loops call it
    prefetch = _prefetching()
    asking = njit(lambda array, i: prefetch(array, i))  # held here: numba's type of it does not
    typeof_impl.register(AskAhead, lambda function, _: types.Dispatcher(asking))
    return njit


def _prefetching() -> Any:
    """The processor's instruction, for numba: it fails nowhere, also not beyond the end of an array."""
    # As late as numba.
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    @intrinsic
    def prefetch(context: Any, array: Any, i: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
            first = context.make_array(signature.args[0])(context, builder, given[0]).data
            place = builder.bitcast(builder.gep(first, [given[1]]), byte)
            wanted = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
            to_read, near, data = (ir.Constant(number, value) for value in (0, 3, 1))
            call = builder.module.declare_intrinsic("llvm.prefetch", [byte], wanted)
            builder.call(call, [place, to_read, near, data])
            return context.get_dummy_value()

        return types.void(array, i), generate

    return prefetch
