"""A command line of one's own for each test."""

from pathlib import Path

import pytest

from support.command_line import CommandLine


@pytest.fixture
def line(tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path)
