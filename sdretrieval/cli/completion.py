"""``sdretrieval completion SHELL``: verbs, flags and their values by the tab key, from the flags as they are."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from typing import Any

EXAMPLE = """\
examples:
  sdretrieval completion bash
  sdretrieval completion fish

Where to put what is printed:
  bash   ~/.local/share/bash-completion/completions/sdretrieval
  zsh    ~/.zshrc, at its end
  fish   ~/.config/fish/completions/sdretrieval.fish
"""

BASH = """\
_sdretrieval() {{
  local cur="${{COMP_WORDS[COMP_CWORD]}}" verb="${{COMP_WORDS[1]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" words=""
  if [ "$COMP_CWORD" -eq 1 ]; then words={verbs}
  else case "$verb $before" in
{values}
    *) case "$verb" in
{flags}
    esac ;;
  esac; fi
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}}
complete -o bashdefault -o default -F _sdretrieval sdretrieval
"""
ZSH = "autoload -U +X compinit && compinit -u\nautoload -U +X bashcompinit && bashcompinit\n"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))


def run(args: argparse.Namespace) -> int:
    print({"bash": bash, "zsh": lambda: ZSH + bash(), "fish": fish}[args.shell](), end="")
    return 0


def flags_of(verb: str) -> Iterator[tuple[list[str], str, list[str]]]:
    """Each flag of a verb: its spellings, its help, and the values it may take where they are few and known."""
    from sdretrieval.cli.main import parser_for

    groups: Any = parser_for(verb)._subparsers  # argparse keeps its flags to itself
    flags = groups._group_actions[0].choices[verb]._actions  # the same
    for action in flags:
        if action.help != argparse.SUPPRESS:
            yield list(action.option_strings), str(action.help or ""), values_of(action)


def values_of(action: argparse.Action) -> list[str]:
    from sdretrieval.ranking.registry import rankers

    if action.choices is None and "--model" in action.option_strings:
        return sorted(rankers())
    return [str(value) for value in action.choices or ()]


def bash() -> str:
    from sdretrieval.cli.main import VERBS

    values, flags = [], []
    for verb in VERBS:
        known = []
        for spellings, _, choices in flags_of(verb):
            known += spellings or choices  # of a word without a flag, its values
            if spellings and choices:
                places = "|".join(f'"{verb} {spelling}"' for spelling in spellings)
                values.append(f"    {places}) words={shlex.quote(' '.join(choices))} ;;")
        flags.append(f"      {verb}) words={shlex.quote(' '.join(known))} ;;")
    return BASH.format(verbs=shlex.quote(" ".join(VERBS)), values="\n".join(values), flags="\n".join(flags))


def fish() -> str:
    from sdretrieval.cli.main import VERBS

    lines = []
    for verb, (_, told) in VERBS.items():
        lines.append(f"complete -c sdretrieval -f -n __fish_use_subcommand -a {verb} -d {shlex.quote(told)}")
        for spellings, about, choices in flags_of(verb):
            names = [f"-l {s[2:]}" if s.startswith("--") else f"-s {s[1:]}" for s in spellings]
            given = [f"-x -a {shlex.quote(' '.join(choices))}"] if choices else []
            # one line, and no `%(default)s`
            about = shlex.quote(" ".join(about.split()).replace("%(default)s", "…")[:80])
            condition = f"-n '__fish_seen_subcommand_from {verb}'"
            lines.append(" ".join(["complete -c sdretrieval", condition, *names, *given, "-d", about]))
    return "\n".join([*lines, ""])
