"""``sdretrieval models``: the ranking models and their parameters."""

from __future__ import annotations

import argparse
import json

EXAMPLE = """\
examples:
  sdretrieval models
  sdretrieval models sd3
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    parser.add_argument("names", nargs="*", metavar="MODEL", help="show these models' parameters")
    parser.add_argument("--json", action="store_true", help="for scripts")


def run(args: argparse.Namespace) -> int:
    from sdretrieval.ranking.registry import ranker_class, rankers

    known = {name: ranker_class(name) for name in args.names} or rankers()
    if args.json:
        print(json.dumps({name: _as_json(model) for name, model in known.items()}, indent=1, ensure_ascii=False))
    elif args.names:
        print("\n\n".join(_detail(model) for model in known.values()))
    else:
        width = max(map(len, known))
        for name, model in known.items():
            print(f"{name:<{width}}  {model.description}")
        print("\n`sdretrieval models NAME` lists a model's parameters; --set NAME=VALUE sets one.")
    return 0


def _detail(model) -> str:
    from sdretrieval.ranking.profile_files import weakness

    rows = [("parameter", "symbol", "default", "paper", "meaning")]
    for p in _as_json(model)["parameters"]:
        default, paper = repr(p["default"]).strip("'"), "" if p["paper"] is None else str(p["paper"])
        rows.append((p["name"], p["symbol"], default, paper, f"{p['meaning']}  {p['range']}"))
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    table = "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, [*widths, 0], strict=True)) for row in rows)
    told = weakness("paper", model.name)
    about = f"\n--profile paper: {told}" if told else ""
    return f"{model.name}: {model.description}{about}\n\n{table}"


def _as_json(model) -> dict:
    from sdretrieval.core.parameters import domains
    from sdretrieval.ranking.profile_files import profile_settings

    paper = profile_settings("paper", model)
    return {
        "description": model.description,
        "uses_feedback": model.uses_feedback,
        "parameters": [
            {
                "name": name,
                "symbol": domain.symbol,
                "default": f.default,
                "paper": paper.get(name),
                "meaning": domain.help,
                "range": domain.describe(),
                "grid": list(domain.grid or domain.choices),
            }
            for name, (f, domain) in domains(model).items()
        ],
    }
