"""``sdretrieval VERB …``: finds the verb's module, lets it parse and run, prints errors for people.

Each verb is one module in this folder with ``configure(parser)`` and ``run(args) -> int | None``. So that ``--help``
answers at once, only the chosen verb's module is imported, and **verbs import what they need inside ``run()``**: at the
top of a verb's module stands only what its flags need. No other import inside a function of cli/ needs a reason.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any, NoReturn

from sdretrieval import __version__
from sdretrieval.cli.terminal import visible_controls
from sdretrieval.core.errors import SdretrievalError

# The one list of verbs: verb -> (module in this folder, one line of help).
VERBS: dict[str, tuple[str, str]] = {
    "index": ("index", "turn a corpus into a Lucene index"),
    "search": ("search", "rank a collection for topics, and write a TREC run"),
    "serve": ("serve", "search by typing: a page in the browser, REST and MCP"),
    "rerank": ("rerank", "rescore the documents of a TREC run"),
    "reproduce": ("reproduce", "make a run again from its manifest, and say what differs"),
    "models": ("models", "list the ranking models and their parameters"),
    "explain": ("explain", "show what a model learnt for a query, and why a document ranks where it does"),
    "expansion": ("expansion", "show and compare saved expanded queries"),
    "fuse": ("fuse", "make one run out of several"),
    "evaluate": ("evaluate", "measure runs against judgments, with significance"),
    "judge": ("judge", "judge a collection of one's own with active learning, and say what is known so far"),
    "tune": ("tune", "choose a model's parameters on some topics, score them on others"),
    "compare": ("compare", "compare two runs topic by topic"),
    "report": ("report", "write one self-contained HTML page about runs"),
    "track": ("track", "follow stories through a stream of documents, online"),
    "tdt": ("tdt", "misses, false alarms and their cost: MinCost and DET curves of tracking"),
    "drift": ("drift", "how the words of a dated collection change over time"),
    "evolve": ("evolve", "classifiers that follow a dated, partly labelled collection through time"),
    "classify": ("classify", "learn labels from labelled documents, and label new ones"),
    "themes": ("themes", "learn latent topics that know where in a document they are; draw and cut documents by them"),
    "burstiness": ("burstiness", "how well distributions predict the counts of words in documents"),
    "spark": ("spark", "index and rank shards of a collection past one machine, on Apache Spark"),
    "export": ("export", "write the postings of an index as CIFF, for engines without Lucene"),
    "doctor": ("doctor", "say what was found on this machine and in an index, and what to mend"),
    "completion": ("completion", "verbs and flags by the tab key: a script for bash, zsh or fish"),
    "demo": ("demo", "make the demo collection, index, rank and evaluate it"),
}
ALIASES = {"themes": ("topics",)}  # other names that work

# Flags that users of other tools bring along, and what does it here.
ELSEWHERE = {
    "--bm25": "--model bm25",
    "--rm3": "--model rm3",
    "--qld": "--model ql (or lucene-qld)",
    "--rocchio": "--model bm25prf",
    "--collection": "nothing: the format is told by the files, or --format names it",
    "--generator": "nothing: fields are named with --id-field and --contents-field",
    "--storeRaw": "--store-raw",
    "--storePositions": "--store-positions",
    "--storeDocvectors": "--store-docvectors",
    "--keepStopwords": "--keep-stopwords",
    "--batch-size": "--threads",
    "--batch": "--threads",
    "--output-format": "nothing: runs are TREC runs",
    "--k1": "--set k1=…",
    "--b": "--set b=…",
    "--provider": "nothing: measures find their provider",
    "--by_query": "--per-topic",
}


class _Parser(argparse.ArgumentParser):
    """Says what to type instead of a flag that is not known."""

    def error(self, message: str) -> NoReturn:
        unknown = re.findall(r"(?<!\S)--?[\w-]+", message) if message.startswith("unrecognized arguments") else []
        told = [f"instead of {flag}: {ELSEWHERE[flag]}" for flag in unknown if flag in ELSEWHERE]
        remedy = (
            f"\n  {'; '.join(told)}." if told else "\n  `sdretrieval VERB --help` lists the flags." if unknown else ""
        )
        super().error(message + remedy)


EXAMPLE = """\
example:
  sdretrieval index --input docs.jsonl --index indexes/mine
  sdretrieval doctor --index indexes/mine

`sdretrieval VERB --help` explains a verb and gives an example.
"""


_SECRET = re.compile(r"(?is)^((?:--conf=)?[\w.-]*(secret|passw|token|credential|access\.?key|account\.?key)[\w.-]*)=.*")


def _without_secret(word: str) -> str:
    """A word of the command line; of a setting KEY=VALUE that holds a password or the like, not the value."""
    return _SECRET.sub(r"\1=…", word)


class _Terminated(KeyboardInterrupt):
    """By a signal. A KeyboardInterrupt, because libraries are prepared for that: Py4J hangs up on Java for no other."""

    def __init__(self, signum: int) -> None:
        self.signum = signum


@contextmanager
def _signals_clean_up() -> Iterator[None]:
    """Let SIGTERM (a batch system's limit, `timeout`) and SIGHUP (a closed window) clean up like Ctrl-C.

    A signal that comes in ignored (`nohup`, `&` in a script) stays ignored. None gets lost: what is raised in a
    library's callback, as LLVM makes when loops are loaded, goes no further; it is sent once more.
    """

    def stop(signum: int, frame: object) -> None:
        raise _Terminated(signum)

    def send_again(told: Any) -> None:
        if not isinstance(told.exc_value, KeyboardInterrupt):
            sys.__unraisablehook__(told)
            return
        signum = told.exc_value.signum if isinstance(told.exc_value, _Terminated) else signal.SIGINT
        again = threading.Timer(0.1, os.kill, (os.getpid(), signum))  # not from here, where it would be lost too
        again.daemon = True
        again.start()

    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]  # Windows has one
    free = [number for number in numbers if signal.getsignal(number) == signal.SIG_DFL]
    before = {number: signal.signal(number, stop) for number in free}
    sys.unraisablehook = send_again
    try:
        yield
    finally:
        sys.unraisablehook = sys.__unraisablehook__
        for number, handler in before.items():
            signal.signal(number, handler)


def parser_for(chosen: str | None) -> argparse.ArgumentParser:
    """All verbs with their line of help; the chosen one with its flags."""
    parser = _Parser(
        prog="sdretrieval",
        description="Exact pseudo-relevance feedback, time-aware ranking and evaluation over Lucene indexes.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"sdretrieval {__version__}")
    parser.add_argument("--debug", action="store_true", help="show tracebacks of errors")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for verb, (module, text) in VERBS.items():
        names = (verb, *ALIASES.get(verb, ()))
        sub = verbs.add_parser(
            verb,
            aliases=names[1:],
            help=text,
            description=text[0].upper() + text[1:] + ".",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        # Also where people type it: after the verb. Suppressed, so as not to undo one before it.
        sub.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        if chosen in names:
            verb_module = importlib.import_module(f"sdretrieval.cli.{module}")
            verb_module.configure(sub)
            sub.set_defaults(run=verb_module.run)
    return parser


def main(argv: list[str] | None = None) -> int:
    with visible_controls():
        return _main(argv)


def _main(argv: list[str] | None) -> int:
    is_program = argv is None  # and not a function of another
    argv = sys.argv[1:] if argv is None else argv
    verb = next((word for word in argv if not word.startswith("-")), None)
    # A command imports and computes much and leaves hardly any garbage: looking for it every 700 objects, as Python
    # does, takes a twentieth of a search, and so does one look at all that has been imported.
    gc.set_threshold(1_000_000 if verb == "search" else 100_000)
    if is_program and verb == "search":
        importlib.import_module("sdretrieval.cli.ahead").start_java(argv)
    parser, words = parser_for(verb), argv
    if verb in ("evaluate", "compare", "report"):
        words = importlib.import_module("sdretrieval.cli.evaluate").files_before_measures(argv)
    args = parser.parse_args(words)
    args.is_program = is_program
    args.command = ["sdretrieval", *map(_without_secret, argv)]  # for manifests: files that are handed on
    try:
        with _signals_clean_up() if is_program else nullcontext():
            code = args.run(args) or 0
            sys.stdout.flush()  # here, where a closed pipe is still ours to handle
            if is_program and verb == "search":
                importlib.import_module("sdretrieval.core.jvm").prepare_next_start()
                gc.freeze()  # nor is there garbage in what the end of the process takes with it
        return code
    except BrokenPipeError:  # `… | head` closed our output: not an error
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt as interrupt:
        how, code = "interrupted", 130
        if isinstance(interrupt, _Terminated):
            how, code = "terminated", 128 + interrupt.signum
        with suppress(OSError):  # the window may be closed
            print(f"sdretrieval {args.verb}: {how}; nothing half-written was left behind", file=sys.stderr)
        return code
    except (SdretrievalError, OSError) as error:  # permissions, disks, missing folders: not worth a traceback either
        if args.debug:
            raise
        told = str(error)
        if isinstance(error, OSError):
            place = "" if error.filename is None else f"{error.filename}: "
            told = f"{place}{error.strerror or error}"
        print(f"sdretrieval {args.verb}: {told}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
