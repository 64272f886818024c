"""Comparison of a page with real output: differences that matter are found, others are ignored."""

from pathlib import Path

import pytest

from support.pages import Block
from support.terminal import Terminal, assert_printed

SAID = """\
id                                    status  at
01a1e1af-1fda-7488-8b8b-a5539457513a  SENT    2027-01-15T08:00:00.123Z
01a1e1af-3512-76de-addf-d4d61b0477fc  FAILED  2027-01-15T08:00:01.456Z
2 bytes
"""


@pytest.mark.parametrize(
    "shown",
    [
        SAID,
        SAID.replace("01a1e1af", "01900000").replace("2027", "2031").replace("    ", " "),
        "id status at\n...\n2 bytes",
        "...\n2 bytes",
        "id status at\n...",
        "...\n01a1e1af-3512-76de-addf-d4d61b0477fc  FAILED  2027-01-15T08:00:01.456Z\n...",
    ],
)
def test_ids_times_widths_and_omitted_lines_are_ignored(shown: str) -> None:
    """They differ each time, or were not worth showing."""
    assert_printed(SAID, shown, where="page")


@pytest.mark.parametrize(
    "shown",
    [
        SAID.replace("FAILED", "SENT"),
        SAID.replace("2 bytes\n", ""),
        SAID + "3 bytes\n",
        "2 bytes",
        "...\n2 bytes\n...\nid status at",
        "...\n3 bytes\n...",
    ],
)
def test_output_that_was_not_printed_is_found(shown: str) -> None:
    """Another word, a line too few or too many, another order."""
    with pytest.raises(AssertionError, match="page"):
        assert_printed(SAID, shown, where="page")


def test_address_has_one_name_in_the_test_and_one_on_the_page(tmp_path: Path) -> None:
    """Servers of tests have free ports, and topics of their own."""
    block = Block("sh", "echo at kafka.example | tee said\n", 1, follows=False)
    terminal = Terminal(tmp_path, places={"kafka.example": "127.0.0.1:20001"})

    terminal.paste(block, "at kafka.example\n", page="page")

    assert (tmp_path / "said").read_text() == "at 127.0.0.1:20001\n"
