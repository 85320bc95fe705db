"""Inner loops, compiled by numba when they are first called; run as plain Python where that is sooner done.

Importing numba and loading its first loop take a second, which most commands need not pay, nor a single query of a
small collection (:func:`plain_loops`): it runs the same source, so that sums have the same order and the same bits.
numba's cache outlives a power cut: what is torn is compiled anew, and is no error for ever.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, update_wrapper
from math import inf
from typing import Any

import numpy as np

__all__ = [
    "Compiled",
    "ask_ahead",
    "at_least",
    "at_most_full",
    "is_loaded",
    "njit",
    "packed",
    "plain_loops",
    "upper_half",
]

_lock = threading.RLock()
_is_plain = False
_own: set[str] = set()  # names of these loops in numba's cache
_missing = [-inf, -inf]  # when the first and the last of them in a row were found missing there; inf: it was told
PATIENCE, PAUSE = 2.0, 10.0  # seconds that they take untold; between one row and the next


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
                _own.add(f"{self.py_func.__module__.rpartition('.')[2]}.{self.py_func.__qualname__}")
                self._dispatcher = _numba_njit()(**self.targetoptions)(self.py_func)
            return self._dispatcher


class Instruction:
    """What the processor does at once and numba has no words for; Python runs the function as it stands."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        update_wrapper(self, function)

    def __call__(self, *given: Any) -> Any:
        return self.function(*given)


@Instruction
def ask_ahead(array: Any, i: int) -> None:
    """``array[i]`` is read soon, and memory may begin to bring it. Changes no result."""


@Instruction
def upper_half(a: Any, b: Any) -> Any:
    """The upper 16 bits of the product of two numbers of 16 bits without a sign."""
    return type(a)(int(a) * int(b) >> 16)


@Instruction
def at_most_full(a: Any, b: Any) -> Any:
    """The sum of two such numbers, or the largest there is."""
    return type(a)(min(int(a) + int(b), 0xFFFF))


@Instruction
def at_least(numbers: Any, first: Any, least: Any) -> Any:
    """Which of the 64 numbers of 16 bits without a sign from ``first`` on reach ``least``: a bit of the answer each."""
    return np.uint64(sum(1 << i for i in range(64) if numbers[first + i] >= least))


@Instruction
def packed(numbers: Any, first: Any) -> Any:
    """The numbers in the 8 bytes from ``first`` on as one, the first of them lowest: memory is asked once for all."""
    return np.frombuffer(numbers[first : first + 8 // numbers.itemsize].tobytes(), "<u8")[0]


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


def is_loaded() -> bool:
    """Whether loops are compiled and a call has brought numba already: another loop takes some milliseconds then."""
    return not _is_plain and _numba_njit.cache_info().currsize > 0


@cache
def _numba_njit() -> Any:
    from numba import njit, types  # takes a tenth of a second
    from numba.core.caching import IndexDataCacheFile
    from numba.extending import typeof_impl

    _load_without_compiler()
    load = IndexDataCacheFile.load

    def load_or_forget(self: IndexDataCacheFile, key: Any) -> Any:
        try:
            found = load(self, key)
        except Exception:  # a pickle that is cut short may raise anything
            found = None
            with suppress(OSError):
                self.flush()
        if found is None and self._index_name.rpartition("-")[0] in _own:
            _tell_of_compiling()
        return found

    IndexDataCacheFile.load = load_or_forget  # type: ignore[method-assign]
    typeof_impl.register(Compiled, lambda function, _: types.Dispatcher(function.dispatcher()))  # where loops call it
    prefetch, multiply, add, compare, read = _intrinsics()
    instructions: dict[str, Any] = {  # held here: numba's types of them do not
        "ask_ahead": njit(lambda array, i: prefetch(array, i)),
        "upper_half": njit(lambda a, b: multiply(a, b)),
        "at_most_full": njit(lambda a, b: add(a, b)),
        "packed": njit(lambda numbers, first: read(numbers, first)),
        "at_least": njit(lambda numbers, first, least: compare(numbers, first, least)),
    }
    typeof_impl.register(Instruction, lambda one, _: types.Dispatcher(instructions[one.__name__]))
    return njit


def _load_without_compiler() -> None:
    """numba would import all it can compile, SciPy's linear algebra with it, before it loads a loop that is compiled.

    It does so all the same when it compiles one. What other packages compile is loaded as ever, and all of it by a
    numba that has not the names that are used here.
    """
    try:
        from numba.core import environment  # as late as numba
        from numba.core.caching import Cache
        from numba.core.runtime import rtsys

        load, rebuild, known = Cache.load_overload, environment._rebuild_env, environment.lookup_environment  # replaced
        load_own, guard = Cache._load_overload, Cache._guard_against_spurious_io_errors  # of which it consists
        memo = environment.Environment._memo  # where lookup_environment looks
    except (ImportError, AttributeError):
        return

    def load_at_once(self: Cache, signature: Any, context: Any) -> Any:
        if self._impl.filename_base.rpartition("-")[0] not in _own:
            return load(self, signature, context)
        rtsys.initialize(context)
        with guard(self):
            return load_own(self, signature, context)

    def without_module(module: str, constants: Any, name: str) -> Any:
        """What compiled code sees of the module that it comes from: no names where it is numba's own."""
        made = known(name)
        if made is not None or module in sys.modules or not module.startswith("numba."):
            return made or rebuild(module, constants, name)
        made = environment.Environment({"__name__": module})
        made.consts[:], made.env_name = constants, name
        memo[name] = made  # as numba's own function keeps it
        return made

    Cache.load_overload = load_at_once  # type: ignore[method-assign]
    environment._rebuild_env = update_wrapper(without_module, rebuild)  # its name is in numba's cache


def _tell_of_compiling() -> None:
    """Once, when it takes longer: the first command on a machine waits for loops, of which one is made of another."""
    now = time.monotonic()
    if now - _missing[1] > PAUSE and _missing[0] < inf:
        _missing[0] = now
    _missing[1] = now
    if now - _missing[0] > PATIENCE:
        _missing[0] = inf
        print("compiling the inner loops for this machine, once: up to a minute", file=sys.stderr, flush=True)


def _intrinsics() -> tuple[Any, ...]:
    """What numba makes of each :class:`Instruction`, in order. Asking ahead fails nowhere, whatever the number."""
    # As late as numba.
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    short, number, whole = ir.IntType(16), ir.IntType(32), ir.IntType(64)
    of_two = types.uint16(types.uint16, types.uint16)

    @intrinsic
    def prefetch(context: Any, array: Any, i: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            byte = ir.IntType(8).as_pointer()
            first = context.make_array(signature.args[0])(context, builder, given[0]).data
            place = builder.bitcast(builder.gep(first, [given[1]]), byte)
            wanted = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
            to_read, near, data = (ir.Constant(number, value) for value in (0, 3, 1))
            call = builder.module.declare_intrinsic("llvm.prefetch", [byte], wanted)
            builder.call(call, [place, to_read, near, data])
            return context.get_dummy_value()

        return types.void(array, i), generate

    @intrinsic
    def multiply(context: Any, a: Any, b: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            product = builder.mul(*(builder.zext(value, number) for value in given))
            return builder.trunc(builder.lshr(product, ir.Constant(number, 16)), short)

        return of_two, generate

    @intrinsic
    def add(context: Any, a: Any, b: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            wanted = ir.FunctionType(short, [short, short])
            return builder.call(builder.module.declare_intrinsic("llvm.uadd.sat", [short], wanted), given)

        return of_two, generate

    @intrinsic
    def compare(context: Any, numbers: Any, first: Any, least: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            of_64 = ir.VectorType(short, 64)
            data = context.make_array(signature.args[0])(context, builder, given[0]).data
            place = builder.bitcast(builder.gep(data, [given[1]]), of_64.as_pointer())
            bar = builder.insert_element(ir.Constant(of_64, ir.Undefined), given[2], ir.Constant(number, 0))
            bars = builder.shuffle_vector(bar, bar, ir.Constant(ir.VectorType(number, 64), [0] * 64))
            reached = builder.icmp_unsigned(">=", builder.load(place, align=2), bars)
            return builder.bitcast(reached, whole)

        return types.uint64(numbers, first, types.uint16), generate

    @intrinsic
    def read(context: Any, numbers: Any, first: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            data = context.make_array(signature.args[0])(context, builder, given[0]).data
            place = builder.bitcast(builder.gep(data, [given[1]]), whole.as_pointer())
            return builder.load(place, align=1)

        return types.uint64(numbers, first), generate

    return prefetch, multiply, add, compare, read
