"""``sdretrieval doctor``: what was found on this machine and in an index; each problem with its fix."""

from __future__ import annotations

import argparse
import json
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from sdretrieval import __version__
from sdretrieval.cli.document_options import add_analyzer_arguments, analyzer_from
from sdretrieval.core.errors import SdretrievalError

if TYPE_CHECKING:
    from sdretrieval.collection.analyzer import AnalyzerSpec

EXAMPLE = """\
examples:
  sdretrieval doctor
  sdretrieval doctor --index indexes/mine
  sdretrieval doctor --index indexes/mine --check
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    parser.add_argument("--index", metavar="DIR", help="look into this index too")
    parser.add_argument("--fetch", action="store_true", help="fetch Lucene now where it is not there (by pip, once)")
    parser.add_argument("--check", action="store_true", help="read the whole index and its snapshot, for checksums")
    add_analyzer_arguments(parser.add_argument_group("analyzer, of an index that does not say it"))
    parser.add_argument("--json", action="store_true", help="for scripts")


def run(args: argparse.Namespace) -> int:
    examination = Examination()
    examination.machine(fetch=args.fetch)
    if args.index:
        examination.index(Path(args.index), analyzer_from(args), check=args.check)
    if args.json:
        print(json.dumps({"facts": dict(examination.facts), "problems": examination.problems}, indent=1, default=str))
    else:
        examination.print()
    return 1 if examination.problems else 0


class Examination:
    """Collects facts and problems; a problem comes with its fix."""

    def __init__(self) -> None:
        self.facts: list[tuple[str, object]] = []
        self.problems: list[dict[str, str]] = []

    def fact(self, name: str, value: object) -> None:
        self.facts.append((name, value))

    def problem(self, what: str, fix: str) -> None:
        self.problems.append({"problem": what, "fix": fix})

    def machine(self, *, fetch: bool = False) -> None:
        from sdretrieval.core import anserini_jar, jvm

        self.fact("sdretrieval", __version__)
        self.fact("Python", f"{platform.python_version()} ({sys.executable})")
        for package in ("pyserini", "pyjnius", "numpy", "scipy", "numba", "ir_measures"):
            try:
                self.fact(package, version(package))
            except PackageNotFoundError:
                self.fact(package, "not installed")
                if package != "pyserini":  # Anserini's jar is all that is needed of it
                    self.problem(f"{package} is not installed", f"pip install {package}")
        for java in jvm.candidates():
            usable = "" if java.major >= jvm.MINIMUM_JAVA else f", too old (needs {jvm.MINIMUM_JAVA})"
            self.fact(f"Java from {java.source}", f"{java.version} at {java.home}{usable}")
        self.spark()  # before Lucene's Java starts, which sets JAVA_HOME
        try:
            chosen = jvm.find_java()
            self.fact("Java used", f"{chosen.version} ({chosen.source})")
            if not chosen.has_vectors:
                own = "python -m sdretrieval.plugins.pyserini pyserini.index.lucene …"
                self.fact("Pyserini's commands", f"need Java's module jdk.incubator.vector, or `{own}`")
            jar = anserini_jar.fetch_jar() if fetch and not anserini_jar.find_jar() else anserini_jar.find_jar()
            if jar is None:
                self.problem("Lucene (Anserini's jar) is not there yet", "sdretrieval doctor --fetch")
                return
            self.fact("Anserini", jar.name)
            from sdretrieval.index.lucene.contents import lucene_version

            self.fact("Lucene", lucene_version())
        except SdretrievalError as error:
            self.problem(error.message, error.remedy or "")

    def spark(self) -> None:
        """For `sdretrieval spark`. Nothing else needs it, so that what is missing is no problem."""
        from sdretrieval.plugins.spark.session import java_for_spark

        try:
            self.fact("PySpark", version("pyspark"))
        except PackageNotFoundError:
            self.fact("PySpark", "not installed (for `sdretrieval spark`: pip install 'sdretrieval[spark]')")
        try:
            home, found = java_for_spark()
            self.fact("Java for Spark", f"{home} ({found})")
        except SdretrievalError as error:
            self.fact("Java for Spark", f"none. {error.message} {error.remedy or ''}".rstrip())

    def index(self, index: Path, wanted: AnalyzerSpec | None = None, *, check: bool = False) -> None:
        from sdretrieval.index.commit import latest_commit
        from sdretrieval.index.index_notes import analyzer_of, read_notes
        from sdretrieval.index.lucene.contents import check_integrity, inspect_index
        from sdretrieval.index.lucene.export import TIME_FIELD
        from sdretrieval.index.snapshot import open_snapshot, snapshot_state

        try:
            latest_commit(index)
            facts = inspect_index(index)
            made_here = "analyzer" in read_notes(index)
            self.fact("index", index)
            self.fact("made by", "sdretrieval" if made_here else "another tool")
            self.fact("documents", f"{facts.documents}" + (f" ({facts.deleted} deleted)" if facts.deleted else ""))
            self.fact("segments", facts.segments)
            self.fact("indexed fields", ", ".join(sorted(facts.fields)))
            self.fact("stored fields", ", ".join(sorted(set(facts.stored))) or "none")
            self.fact("term vectors", "yes" if facts.has_vectors else "no (not needed: the snapshot has them)")
            self.fact("positions", "yes" if facts.has_positions else "no")
            self.fact("raw text", "yes" if "raw" in facts.stored else "no (explain --text cannot show documents)")
            self._analyzer(index, wanted or analyzer_of(index), assumed=not made_here and wanted is None)
            if "contents" not in facts.fields:
                self.problem("the index has no field 'contents'", "Re-index with `sdretrieval index`.")
                return
            state = snapshot_state(index, again=check)
            self.fact("snapshot", state if state in ("fresh", "absent") else f"{state}; will be rebuilt at next use")
            if check:
                check_integrity(index)
                self.fact("checksums", "right")
            if state == "fresh":
                self._dates(open_snapshot(index))
            elif TIME_FIELD in facts.fields:
                self.fact("dates", "yes")
        except SdretrievalError as error:
            self.problem(error.message, error.remedy or "")

    def _analyzer(self, index: Path, spec: AnalyzerSpec, *, assumed: bool) -> None:
        """What it is; of an index that does not say it, whether its own texts agree."""
        from sdretrieval.cli.options import analyzer_doubts
        from sdretrieval.index.lucene.language import analyzer_fit

        self.fact("analyzer", spec.to_json())
        if assumed:
            with analyzer_fit(index) as fit:
                share = fit.share(spec)
            how = "no stored text to check it with" if share is None else f"it fits {share:.0%} of its texts' words"
            self.fact("analyzer from", f"assumed: the index does not say it ({how}); --language gives another")
        for doubt, remedy in analyzer_doubts(index, spec):
            self.problem(doubt, remedy)

    def _dates(self, snapshot) -> None:
        from sdretrieval.core.times import UNDATED, format_time

        dated = snapshot.times[snapshot.times != UNDATED]
        if len(dated):
            span = f"{format_time(int(dated.min()))} … {format_time(int(dated.max()))}"
            self.fact("dates", f"{len(dated)} of {snapshot.n_docs} documents, {span}")
        else:
            self.fact("dates", "none: time priors, drift and as-of need them (index with --date-field)")

    def print(self) -> None:
        width = max(len(name) for name, _ in self.facts)
        for name, value in self.facts:
            print(f"{name:<{width}}  {value}")
        print()
        for entry in self.problems:
            print(f"PROBLEM  {entry['problem']}\n    fix  {entry['fix']}")
        if not self.problems:
            print("no problems found")
