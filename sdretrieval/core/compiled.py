"""numba's ``njit``, with a cache that outlives a power cut: what is torn is compiled anew, and is no error for ever."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from numba import njit
from numba.core.caching import IndexDataCacheFile

__all__ = ["njit"]

_load = IndexDataCacheFile.load


def _load_or_forget(self: IndexDataCacheFile, key: Any) -> Any:
    try:
        return _load(self, key)
    except Exception:  # a pickle that is cut short may raise anything
        with suppress(OSError):
            self.flush()
        return None


IndexDataCacheFile.load = _load_or_forget  # type: ignore[method-assign]
