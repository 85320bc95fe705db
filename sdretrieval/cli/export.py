"""``sdretrieval export``: the postings of an index as CIFF, for engines without Lucene."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

EXAMPLE = """\
examples:
  sdretrieval export --index indexes/mine --output mine.ciff.gz
  and back, without texts and dates:
  sdretrieval index --input mine.ciff.gz --index indexes/again

CIFF, the Common Index File Format, has terms, documents, counts and lengths; PISA, Terrier, Anserini and others read
or write it.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    parser.add_argument("--index", required=True, metavar="DIR", help="Lucene index (Anserini's, Pyserini's or ours)")
    parser.add_argument("--output", required=True, metavar="FILE", help="the CIFF file; .gz compresses it")


def run(args: argparse.Namespace) -> int:
    from sdretrieval.core.files import check_writable
    from sdretrieval.index.ciff import write_ciff
    from sdretrieval.index.snapshot import open_snapshot

    check_writable(args.output)
    snapshot = open_snapshot(args.index)
    write_ciff(args.output, snapshot)
    size = Path(args.output).stat().st_size / 1e6
    told = f"{snapshot.n_docs:,} documents, {snapshot.n_terms:,} terms, {snapshot.n_postings:,} postings"
    print(f"{args.output}: {told}, {size:.1f} MB", file=sys.stderr)
    return 0
