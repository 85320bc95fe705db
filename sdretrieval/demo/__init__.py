"""The project's own demo collection: a synthetic, dated news stream with topics and graded judgements."""

from __future__ import annotations

from sdretrieval.demo.generate import DEFAULT_SEED, DemoCollection, DemoFiles, generate_demo, write_demo

__all__ = ["DEFAULT_SEED", "DemoCollection", "DemoFiles", "generate_demo", "write_demo"]
