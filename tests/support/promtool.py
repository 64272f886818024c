"""Prometheus' own tool: it reads rules as Prometheus does, and runs their unit tests."""

import subprocess
from pathlib import Path

from support.services import program


class RulesRefused(Exception):
    """Rules that Prometheus would not load, or that fail their unit test; the text is promtool's."""


def check_rules(*files: Path) -> str:
    """Check rules; the output of promtool."""
    return _run("check", "rules", *files)


def check_config(file: Path) -> str:
    """Check the settings of Prometheus, and the rules that they name; the output of promtool."""
    return _run("check", "config", file)


def run_rule_tests(*files: Path) -> str:
    """Run unit tests of rules; the output of promtool."""
    return _run("test", "rules", *files)


def _run(*arguments: str | Path) -> str:
    command = [program("promtool"), *arguments]
    ran = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if ran.returncode:
        raise RulesRefused(ran.stdout)
    return ran.stdout
