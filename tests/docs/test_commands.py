"""Commands in the docs exist."""

import shlex

import pytest

import generate
from support.pages import blocks_of, pages

LEAVES = {leaf.name: leaf.command for leaf in generate.leaves()}


def _lines() -> list[str]:
    """Commands that are shown and not run: those in ``sh`` blocks are run by other tests."""
    blocks = [block for page in pages() for block in blocks_of(page)]
    shown = [block for block in blocks if block.language in {"bash", "shell"}]
    lines = [line for block in shown for line in block.code.splitlines()]
    return [line for line in lines if line.startswith("carteiro ")]


@pytest.mark.parametrize("line", _lines())
def test_command_of_a_page_is_valid(line: str) -> None:
    """With all its options."""
    command, *_ = line.split(" 2> ")  # redirections are the shell's
    words = shlex.split(command, comments=True)
    name = next(name for many in (4, 3, 2) if (name := " ".join(words[:many])) in LEAVES)

    LEAVES[name].make_context(name, words[len(name.split()) :])


def test_pages_have_commands() -> None:
    """A page that hides them from this test proves nothing."""
    assert len(_lines()) > 1
