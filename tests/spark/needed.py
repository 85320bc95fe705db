"""What tests on a real Spark need: PySpark, and a Java that Spark runs on, found or installed; else skipped."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from packages import found_or_installed

from sdretrieval.errors import JavaError
from sdretrieval.lucene.jvm import JavaRuntime, find_spark_java


def spark_for(module: ModuleType) -> Any:
    """PySpark, for a module of tests. Workers cannot import it: what it defines travels whole."""
    pyspark = pytest.importorskip("pyspark", reason="PySpark is not installed (sdretrieval[spark])")
    java, reason = found_or_installed("a Java for Spark", _java, "openjdk-17-jre-headless")
    if java is None:
        pytest.skip(reason, allow_module_level=True)
    pyspark.cloudpickle.register_pickle_by_value(module)
    return pyspark


def _java() -> JavaRuntime | None:
    try:
        return find_spark_java()
    except JavaError:
        return None
