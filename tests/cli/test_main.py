"""The frame of the command line: help, errors, interrupts, pipes."""

from __future__ import annotations

import importlib
import os
import re
import shlex
import subprocess
import sys

import pytest

from sdretrieval import __version__
from sdretrieval.cli.main import VERBS, main
from sdretrieval.core.errors import InputError


@pytest.mark.parametrize("verb", VERBS)
def test_help_has_examples_that_work(typed, monkeypatch, verb):
    """Each command of a help text is taken by the parser of its verb."""
    outcome = typed(verb, "--help")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith(f"usage: sdretrieval {verb} ")
    examples = re.split(r"^examples?:$", outcome.out, flags=re.MULTILINE)
    assert len(examples) == 2, "no example"
    commands = re.findall(r"^ +sdretrieval (.+)$", examples[1].replace("\\\n", " "), flags=re.MULTILINE)
    assert any(command.split()[0] == verb for command in commands)
    for command in commands:
        words = shlex.split(command)
        ran = []
        module = importlib.import_module(f"sdretrieval.cli.{VERBS[words[0]][0]}")
        monkeypatch.setattr(module, "run", ran.append)
        assert typed(*words).code == 0, command
        assert [args.verb for args in ran] == [words[0]]


def test_help_of_the_whole(typed):
    outcome = typed("--help")
    assert outcome.code == 0
    for verb in VERBS:
        assert re.search(rf"^    {verb}\b", outcome.out, flags=re.MULTILINE)
    assert "example:\n  sdretrieval index --input" in outcome.out


@pytest.mark.parametrize("flag", ["--help", "--version"])
def test_help_imports_nothing_heavy(flag):
    """So that it answers at once; and neither it nor the package starts Java."""
    program = """
import sys
from sdretrieval.cli.main import main
try:
    main(sys.argv[1:])
except SystemExit as stop:
    assert not stop.code
heavy = "numpy scipy numba sklearn matplotlib ir_measures pyserini jnius jnius_config torch pandas".split()
sys.exit(" ".join(sorted({*heavy} & {*sys.modules})) or 0)
"""
    ended = subprocess.run([sys.executable, "-c", program, flag], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_version(typed):
    assert typed("--version").out == f"sdretrieval {__version__}\n"


def test_the_package_is_a_program():
    ended = subprocess.run([sys.executable, "-m", "sdretrieval", "--version"], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (0, f"sdretrieval {__version__}\n")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "the following arguments are required: VERB"),
        (["serach"], "invalid choice: 'serach' (choose from"),
        (["models", "--colour"], "unrecognized arguments: --colour"),
    ],
)
def test_what_cannot_be_understood(typed, words, told):
    outcome = typed(*words)
    assert (outcome.code, outcome.out) == (2, "")
    assert told in outcome.err
    assert "Traceback" not in outcome.err


def raising(error: BaseException):
    def run(args):
        raise error

    return run


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            InputError("not a number", file="run.txt", line=3, remedy="Write one."),
            "run.txt:3: not a number\n  Write one.",
        ),
        (PermissionError(13, "Permission denied", "/secret"), "/secret: Permission denied"),
        (OSError(28, "No space left on device"), "No space left on device"),
    ],
)
def test_errors_are_for_people_and_debug_for_programmers(monkeypatch, typed, error, told):
    monkeypatch.setattr("sdretrieval.cli.models.run", raising(error))
    outcome = typed("models")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == f"sdretrieval models: {told}\n"
    for words in (["--debug", "models"], ["models", "--debug"]):
        with pytest.raises(type(error)):
            main(words)


def test_a_bug_is_not_hidden(monkeypatch):
    monkeypatch.setattr("sdretrieval.cli.models.run", raising(ZeroDivisionError("ours")))
    with pytest.raises(ZeroDivisionError):
        main(["models"])


def test_ctrl_c(monkeypatch, typed):
    monkeypatch.setattr("sdretrieval.cli.models.run", raising(KeyboardInterrupt()))
    outcome = typed("models")
    assert outcome.code == 130
    assert outcome.err == "sdretrieval models: interrupted; nothing half-written was left behind\n"


@pytest.mark.skipif(os.name != "posix", reason="sends signals")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_a_signal_that_comes_in_ignored_stays_ignored(name):
    """As under nohup, or of what a script starts with &."""
    program = """
import os, signal, sys
signal.signal(number := getattr(signal, sys.argv.pop()), signal.SIG_IGN)
from sdretrieval.cli import models
from sdretrieval.cli.main import main
models.run = lambda args: os.kill(os.getpid(), number) or print("went on")
sys.exit(main())
"""
    done = subprocess.run([sys.executable, "-c", program, "models", name], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout, done.stderr) == (0, "went on\n", "")


@pytest.mark.parametrize("words", [["models"], ["models", "--json"]], ids=["short", "long"])
def test_a_closed_pipe_is_no_error(started, words):
    """As in `sdretrieval models | head -1`: whether the output fits into the buffer of the pipe or not."""
    process = started(*words)
    process.stdout.close()
    process.stdout = None
    _, err = process.communicate(timeout=300)
    assert (process.returncode, err) == (0, "")


@pytest.mark.parametrize(
    ("word", "kept"),
    [
        ("spark.hadoop.fs.s3a.secret.key=abc", "spark.hadoop.fs.s3a.secret.key=…"),
        ("--conf=spark.hadoop.fs.s3a.access.key=abc=", "--conf=spark.hadoop.fs.s3a.access.key=…"),
        ("spark.authenticate.secret=a\nb", "spark.authenticate.secret=…"),
        ("spark.hadoop.fs.azure.account.key.x.net=abc", "spark.hadoop.fs.azure.account.key.x.net=…"),
        ("spark.executor.memory=4g", "spark.executor.memory=4g"),
        ("runs/secret.txt", "runs/secret.txt"),
    ],
)
def test_manifests_do_not_hold_passwords(monkeypatch, word, kept):
    seen = []
    monkeypatch.setattr("sdretrieval.cli.models.configure", lambda parser: parser.add_argument("--conf"))
    monkeypatch.setattr("sdretrieval.cli.models.run", lambda args: seen.append(args.command))
    main(["models", word] if word.startswith("--") else ["models", "--conf", word])
    assert seen[0][-1] == kept


@pytest.mark.skipif(os.name != "posix", reason="sends signals")
@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGHUP", 129), ("SIGINT", 130)])
def test_a_signal_is_not_lost_in_a_callback_of_a_library(name, code):
    """As one that comes while LLVM loads compiled loops."""
    program = """
import ctypes, os, signal, sys, time
from sdretrieval.cli import models
from sdretrieval.cli.main import main

@ctypes.CFUNCTYPE(None)
def callback():  # what is raised in it goes no further
    os.kill(os.getpid(), sent)
    time.sleep(0.1)

def run(args):
    callback()
    time.sleep(600)

sent, models.run = getattr(signal, sys.argv.pop()), run
sys.exit(main())
"""
    command = [sys.executable, "-c", program, "models", name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    how = "interrupted" if name == "SIGINT" else "terminated"
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr == f"sdretrieval models: {how}; nothing half-written was left behind\n"


def test_control_characters_are_shown_and_not_obeyed(tmp_path, capsys):
    """Here of a file's name in an error."""
    assert main(["evaluate", str(tmp_path / "q\x1b[2J\x9b1m\r"), "run"]) == 2
    told = capsys.readouterr().err
    assert r"q\x1b[2J\x9b1m\x0d: no such file" in told
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", told)


def test_streams_are_as_they_were_afterwards(capsys):
    before = sys.stdout, sys.stderr
    with pytest.raises(SystemExit):
        main(["--help"])
    assert (sys.stdout, sys.stderr) == before
