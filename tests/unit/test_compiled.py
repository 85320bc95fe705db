"""A cache of compiled loops that a power cut tore; loops that are called before numba is imported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sdretrieval.core.compiled import at_least, njit, packed, plain_loops

REPOSITORY = Path(__file__).resolve().parents[2]
LOOP = "from sdretrieval.core.compiled import njit\n\n\n@njit(cache=True)\ndef double(x):\n    return 2 * x\n"


def test_a_torn_cache_is_made_anew(tmp_path):
    (tmp_path / "loop.py").write_text(LOOP)
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{REPOSITORY}", "NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def call() -> str:
        words = [
            sys.executable,
            "-c",
            "import loop; print(loop.double(21), sum(loop.double.dispatcher().stats.cache_hits.values()))",
        ]
        return subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout

    assert call() == "42 0\n"
    for ending, size in (("nbi", 0), ("nbc", 20)):
        [torn] = tmp_path.glob(f"cache/**/*.{ending}")
        torn.write_bytes(torn.read_bytes()[:size])
        assert call() == "42 0\n"
    assert call() == "42 1\n"  # whole again


def test_numba_is_imported_at_the_first_call():
    program = (
        "import sys\n"
        "from sdretrieval.core.compiled import njit, plain_loops\n"
        "inner = njit(inline='always')(lambda x: x + 1)\n"
        "outer = njit()(lambda x: 2 * inner(x))\n"
        "with plain_loops():\n"
        "    print(outer(20), 'numba' in sys.modules)\n"
        "print(outer(20), 'numba' in sys.modules)\n"
        "with plain_loops():\n"
        "    print(outer(2.5))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=REPOSITORY)
    assert done.stdout == "42 False\n42 True\n7.0\n"


def test_a_compiled_loop_is_loaded_without_the_compiler(tmp_path):
    """What it calls of numba's own comes with it; what is compiled afterwards finds it, and all else."""
    (tmp_path / "loop.py").write_text(
        "import numpy as np\n"
        "from sdretrieval.core.compiled import njit\n"
        "@njit(cache=True)\ndef total(x):\n"
        "    if x == 0:\n        raise ValueError('nothing')\n"
        "    return np.sort(np.full(3, x)).sum()\n"
        "@njit()\ndef twice(x):\n    return total(x) + np.eye(2).dot(np.full(2, x)).max()\n"
    )
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{REPOSITORY}", "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    program = (
        "import sys, loop\n"
        "print(loop.total(2.0), 'numba.np.arraymath' in sys.modules, 'scipy.linalg' in sys.modules)\n"
        "for call in (loop.total, loop.twice):\n"
        "    try:\n        call(0.0)\n    except ValueError as error:\n        print(error, end=' ')\n"
        "print(loop.twice(2.0))\n"
    )

    def told() -> str:
        words = [sys.executable, "-c", program]
        return subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout

    assert told() == "6.0 True True\nnothing nothing 8.0\n"
    assert told() == "6.0 False False\nnothing nothing 8.0\n"


def test_another_numba_loads_loops_in_its_own_way():
    program = (
        "from numba.core import environment\n"
        "from sdretrieval.core.compiled import njit\n"
        "double, rebuild = njit()(lambda x: 2 * x), environment.__dict__.pop('_rebuild_env')\n"
        "double.dispatcher()\n"
        "environment._rebuild_env = rebuild\n"
        "print(double(21))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=REPOSITORY)
    assert done.stdout == "42\n"


def test_who_waits_for_compiling_is_told_once(tmp_path):
    (tmp_path / "loop.py").write_text(
        "from sdretrieval.core import compiled\n"
        "compiled.PATIENCE = 0.0\n"
        "inner = compiled.njit(cache=True)(lambda x: x + 1)\n"
        "@compiled.njit(cache=True)\ndef middle(x):\n    return inner(x) + 1\n"
        "@compiled.njit(cache=True)\ndef outer(x):\n    return 2 * middle(x)\n"
    )
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{REPOSITORY}", "NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def told() -> str:
        words = [sys.executable, "-c", "import loop; print(loop.outer(19))"]
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
        assert done.stdout == "42\n"
        return done.stderr

    assert told() == "compiling the inner loops for this machine, once: up to a minute\n"
    assert told() == ""


@njit(cache=True)
def reaching(numbers, first, least):
    return at_least(numbers, first, least)


@given(st.lists(st.sampled_from([0, 1, 32767, 32768, 65535]), min_size=70, max_size=90), st.integers(0, 6), st.data())
def test_64_numbers_are_compared_at_once(numbers: list[int], first: int, data: st.DataObject):
    least = data.draw(st.sampled_from([*numbers, 2, 65534]))
    expected = {i for i in range(64) if numbers[first + i] >= least}
    given_ = np.array(numbers, np.uint16), first, np.uint16(least)
    for is_plain in (False, True):
        with plain_loops(is_plain):
            bits = int(reaching(*given_))
        assert {i for i in range(64) if bits >> i & 1} == expected


@njit(cache=True)
def in_eight_bytes(numbers, first):
    return packed(numbers, first)


@given(st.lists(st.integers(0, 255), min_size=14, max_size=20), st.integers(0, 4))
def test_eight_bytes_are_read_at_once(numbers: list[int], first: int):
    for dtype, n in ((np.uint8, 8), (np.uint16, 4)):
        expected = sum(number << 64 // n * i for i, number in enumerate(numbers[first : first + n]))
        for is_plain in (False, True):
            with plain_loops(is_plain):
                assert int(in_eight_bytes(np.array(numbers, dtype), first)) == expected
