"""The command line in this process, on a separate store."""

import asyncio
import json
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from typer import testing
from typer.main import get_command
from typer.testing import CliRunner

from carteiro.app import Carteiro
from carteiro.cli import app
from carteiro.cli.exit_codes import ExitCode
from carteiro.config import load
from support.commands import environment_of_a_command

# As in a real process: the commands are made once. To make all of them takes longer than to run most.
testing._get_command = cache(get_command)  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Ran:
    """Output and exit code of a command."""

    code: ExitCode
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """The one JSON document of the output."""
        assert self.code == ExitCode.OK, self.err
        [document] = self.documents
        return document

    @property
    def documents(self) -> list[dict[str, Any]]:
        """The JSON documents of the output, one a line."""
        return [json.loads(line) for line in self.out.splitlines()]


@dataclass(frozen=True)
class CommandLine:
    """Runs commands like a user whose store is in this folder."""

    folder: Path

    @property
    def file(self) -> Path:
        """The store's file."""
        return self.folder / "carteiro.db"

    def __call__(self, *arguments: str, stdin: str | None = None, **settings: str) -> Ran:
        """Run a command, with these settings in its environment; an unexpected error is raised."""
        environment = {"CARTEIRO_STORE": f"sqlite:///{self.file}"} | settings
        ran = CliRunner(env=environment).invoke(app, arguments, input=stdin, catch_exceptions=False)
        return Ran(ExitCode(ran.exit_code), ran.stdout, ran.stderr)

    def asked(self, *arguments: str, **settings: str) -> dict[str, Any]:
        """The one JSON document that a successful command prints."""
        return self(*arguments, "--json", **settings).document

    def listed(self, *arguments: str, **settings: str) -> list[dict[str, Any]]:
        """The JSON documents that a successful list prints."""
        ran = self(*arguments, "--json", **settings)
        assert ran.code == ExitCode.OK, ran.err
        return ran.documents

    def done(self, *arguments: str, **settings: str) -> str:
        """The text that a successful command prints."""
        ran = self(*arguments, **settings)
        assert ran.code == ExitCode.OK, ran.err
        return ran.out

    def processed(self, **settings: str) -> None:
        """Run ``carteiro process`` in a child: in this process it would leave signals ignored, and another log."""
        subprocess.run(
            [sys.executable, "-m", "carteiro.cli", "process"],
            env=environment_of_a_command(CARTEIRO_STORE=f"sqlite:///{self.file}", **settings),
            cwd=self.folder,
            capture_output=True,
            check=True,
        )

    def tenant(self, name: str) -> str:
        """A tenant that was added."""
        self.done("tenant", "add", name)
        return name

    def sent(self, to: str = "ok@sandbox.test", *flags: str) -> str:
        """The id of a submitted e-mail, before any worker has run."""
        given = ("--to", to, "--subject", "Bom dia", "--text", "Olá")
        return str(self.asked("send", *given, *flags)["outboxId"])

    def worked_off(self, **settings: str) -> None:
        """Run a worker on the due messages; not by command, which would change the log of this process."""
        asyncio.run(self._worked_off({"CARTEIRO_STORE": f"sqlite:///{self.file}"} | settings))

    async def _worked_off(self, environ: dict[str, str]) -> None:
        async with Carteiro.open(settings=load(environ=environ)) as post:
            await post.work_off()

    def dead(self, *flags: str) -> str:
        """The id of an e-mail that became a dead letter."""
        message = self.sent("bounce-550@sandbox.test", *flags)
        self.worked_off()
        return message
