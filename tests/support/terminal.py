"""A reader who follows a page: pastes its commands in order, and copies ids from the output."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from string import Template

from typer.testing import CliRunner

from carteiro.cli import app
from support.commands import environment_of_a_command
from support.pages import Block, runnable
from support.running import PATIENCE_S

LANGUAGES = ("sh", "py")
ADDRESS = "http://127.0.0.1:8025"  # as in the pages

_PROGRAM = 'exec {python} -m carteiro.cli "$@"\n'
_CHANGE_THE_LOG = {"up", "api", "worker", "process"}  # of the process that they run in
_NEEDS_A_SHELL = re.compile(r"[|<>;&*`]|\$\(")
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_GROUP = re.compile(r"(?<![-\w])[0-9a-f]{12}(?![-\w])")
_MASKS = (
    (_ID, "ID"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"), "TIME"),
    (re.compile(r"\bc[ak]_[\w-]{6,}"), "SECRET"),
    (re.compile(r"(/console/link/)[\w-]{6,}"), r"\1SECRET"),
    (re.compile(r"\brun [0-9a-f]{32}\b"), "run RUN"),
    (re.compile(r"(durationMs\W+)\d+"), r"\1N"),
    (re.compile(r"(redrivenBy\W+)\w+"), r"\1SOMEBODY"),
    (re.compile(r"\b\d{1,3}(?:,\d{3})+\b"), "N"),
    (re.compile(r"\b\d+\.\d (?:kB|MB|GB|TB)\b"), "SIZE"),
)
LEFT_OUT = "..."


@dataclass(frozen=True)
class Answered:
    """Output and exit code of a command."""

    code: int
    out: str
    err: str


@dataclass
class Terminal:
    """Runs the ``sh`` and ``py`` blocks of a page, in this folder; ``words`` are its shell variables.

    ``$ID`` is the first id of the last output, ``$GROUP`` the first failure group. A command that needs no
    shell runs in this process. Those that ``fails`` names end with that exit code, all others with 0. People are slow:
    ``meanwhile`` waits for the servers between two commands. ``places`` are names on the pages of things
    that have other names here.
    """

    folder: Path
    words: dict[str, str] = field(default_factory=dict)
    address: str = ADDRESS
    fails: Mapping[str, int] = field(default_factory=dict)
    meanwhile: Callable[[], None] = lambda: None
    places: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Put the program where a shell finds it."""
        program = self.folder / "bin" / "carteiro"
        program.parent.mkdir(exist_ok=True)
        program.write_text("#!/bin/sh\n" + _PROGRAM.format(python=shlex.quote(sys.executable)))
        program.chmod(0o755)

    def follow(self, page: str) -> None:
        """Run every block of a page; each command must succeed, and print what the page shows."""
        for block, printed in runnable(page, *LANGUAGES):
            self.paste(block, printed, page=page)

    def paste(self, block: Block, printed: str | None, *, page: str) -> None:
        """Run one block."""
        said = ""
        commands = _commands(block.code) if block.language == "sh" else [_program(block.code)]
        for command in commands:
            self.meanwhile()
            answer = self.run(self._as_here(command))
            told = f"{page}:{block.line}: {command}\n{answer.out}{answer.err}"
            assert answer.code == self.fails.get(command, 0), told
            said += self._as_on_the_page(answer.out)
        if printed is not None:
            assert_printed(said, printed, where=f"{page}:{block.line}")

    def run(self, command: str) -> Answered:
        """Run one command, and remember the first id that it prints."""
        command = command.replace(ADDRESS, self.address)
        answer = self._here(command) if _runs_here(command) else self._in_a_shell(command)
        if (found := _ID.search(answer.out)) is not None:
            self.words["ID"] = found[0]
        if (found := _GROUP.search(answer.out)) is not None:
            self.words["GROUP"] = found[0]
        return answer

    def _as_here(self, text: str) -> str:
        for page, here in self.places.items():
            text = text.replace(page, here)
        return text

    def _as_on_the_page(self, text: str) -> str:
        for page, here in self.places.items():
            text = text.replace(here, page)
        return text

    def _here(self, command: str) -> Answered:
        words = shlex.split(Template(command).substitute(self.words), comments=True)
        nothing: Mapping[str, str | None] = {
            name: None for name in os.environ if name.startswith("CARTEIRO_")
        }
        ran = CliRunner(env=nothing).invoke(app, words[1:], catch_exceptions=False)
        return Answered(ran.exit_code, ran.stdout, ran.stderr)

    def _in_a_shell(self, command: str) -> Answered:
        environment = environment_of_a_command(**self.words)
        environment["PATH"] = f"{self.folder / 'bin'}{os.pathsep}{environment['PATH']}"
        ran = subprocess.run(
            ["/bin/sh", "-c", command],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=2 * PATIENCE_S,
            check=False,
        )
        return Answered(ran.returncode, ran.stdout, ran.stderr)


def _program(code: str) -> str:
    """The command that runs a program in Python."""
    return shlex.join([sys.executable, "-c", code])


def _commands(code: str) -> Iterable[str]:
    """The commands of a block: a line each, or more where a backslash or a quote says so."""
    waiting = ""
    for line in code.splitlines():
        waiting += line
        if _is_whole(waiting):
            if waiting.strip():
                yield waiting
            waiting = ""
        else:
            waiting += "\n"
    assert not waiting, f"has no end: {waiting}"


def _is_whole(text: str) -> bool:
    try:
        shlex.split(text, comments=True)
    except ValueError:
        return False
    return not text.endswith("\\")


def _runs_here(command: str) -> bool:
    program, *arguments = shlex.split(command, comments=True)
    is_plain = not _NEEDS_A_SHELL.search(command)
    return program == "carteiro" and is_plain and arguments[0] not in _CHANGE_THE_LOG


def assert_printed(said: str, expected: str, *, where: str) -> None:
    """Compare the output with the page, without ids, times and column widths; ... stands for omitted lines."""
    lines = [_masked(line) for line in said.splitlines()]
    parts = _parts([_masked(line) for line in expected.splitlines()])
    place = 0
    for number, part in enumerate(parts):
        is_last = number == len(parts) - 1
        starts = range(place, len(lines) - len(part) + 1) if number else (0,)
        fits = [at for at in starts if lines[at : at + len(part)] == part]
        assert fits, f"{where} shows\n{expected}\nand there came\n{said}"
        place = (fits[-1] if is_last else fits[0]) + len(part)
    assert place == len(lines), f"{where} ends before\n{said}"


def _parts(shown: list[str]) -> list[list[str]]:
    """The text between the omitted lines; at either end there may be nothing."""
    parts: list[list[str]] = [[]]
    for line in shown:
        if line == LEFT_OUT:
            parts.append([])
        else:
            parts[-1].append(line)
    return parts


def _masked(line: str) -> str:
    for pattern, word in _MASKS:
        line = pattern.sub(word, line)
    return " ".join(line.split())
