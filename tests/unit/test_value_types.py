"""What the flags of the command line take."""

import argparse

import pytest

from sdretrieval.cli.main import VERBS, parser_for
from sdretrieval.cli.value_types import natural, positive


@pytest.mark.parametrize(("kind", "least"), [(positive, 1), (natural, 0)])
def test_whole_numbers_have_a_least_one(kind, least):
    assert [kind(str(least)), kind("12")] == [least, 12]
    with pytest.raises(argparse.ArgumentTypeError, match=f"must be at least {least}, got {least - 1}"):
        kind(str(least - 1))
    with pytest.raises(argparse.ArgumentTypeError, match=r"'1\.5' is not a whole number"):
        kind("1.5")


@pytest.mark.parametrize("verb", VERBS)
def test_a_negative_seed_is_refused(verb):
    """NumPy's generators take none, and Python's forgets the sign."""
    for flag in _flags(parser_for(verb)):
        if "--seed" in flag.option_strings:
            assert flag.type is natural


def _flags(parser):
    for flag in parser._actions:
        if isinstance(flag, argparse._SubParsersAction):
            for sub in flag.choices.values():
                yield from _flags(sub)
        else:
            yield flag
