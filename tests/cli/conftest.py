"""A separate command line for each test."""

from pathlib import Path

import pytest

from support.command_line import CommandLine


@pytest.fixture
def line(tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path)
