"""``carteiro move``: copy a store to another one."""

import asyncio
import time
from pathlib import Path
from typing import Annotated

import typer

from carteiro.cli.desk import refuse_missing, told
from carteiro.cli.options import AsJson, ConfigFile
from carteiro.cli.printing import Printer
from carteiro.cli.progress import SECONDS_BETWEEN_LINES, Share, share_done
from carteiro.config import Settings, load
from carteiro.model import Via
from carteiro.ports.moving import InFlight
from carteiro.runtime.acting import act_as, on_this_machine
from carteiro.stores import move as moving
from carteiro.stores.open import open_move
from carteiro.views.moments import in_iso


@told
def move(
    *,
    source: Annotated[str, typer.Option("--from", help="Source store: sqlite:///FILE.")],
    target: Annotated[
        str, typer.Option("--to", help="Target, an empty database: postgresql://HOST/DATABASE.")
    ],
    reopen: Annotated[
        bool,
        typer.Option("--reopen", help="Undo the move; only before the target has sent anything."),
    ] = False,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Move everything to another store; the old one stays closed and names the new one.

    Meanwhile no message is accepted; the move waits for messages in flight. Run it again if it was interrupted.
    """
    left, arrival = _settings(config, source, "--from"), _settings(config, target, "--to")
    refuse_missing(left, named_by="--from")
    out = Printer(as_json=as_json)
    act_as(on_this_machine(Via.CLI))
    asyncio.run(_taken_back(left, arrival, out) if reopen else _moved(left, arrival, out))


def _settings(config: Path | None, store: str, option: str) -> Settings:
    given = {"store": store, "queue": ""}
    return load(file=config, overrides=given, origin=lambda _: option)


async def _moved(left: Settings, arrival: Settings, out: Printer) -> None:
    async with open_move(left, arrival) as (source, target):
        with share_done(f"move to {target.name}") as tell:
            moved = await moving.move(source, target, _Progress(tell))
        document = {"from": source.name, "to": target.name, "rows": dict(moved.counts)}
        messages, jobs = moved.counts["messages"], moved.counts["jobs"]
        done = "were moved before" if moved.again else "were moved"
        sentence = (
            f"{messages:,} messages, {jobs:,} of them unfinished, and their data {done}. "
            f"{source.name} stays closed: start all processes on {target.name}"
        )
        out.answer(document, sentence)


async def _taken_back(left: Settings, arrival: Settings, out: Printer) -> None:
    async with open_move(left, arrival) as (source, target):
        await moving.take_back(source, target)
        sentence = f"{source.name} is open again. {target.name} is closed until the next move."
        out.answer({"from": source.name, "to": target.name, "reopened": True}, sentence)


class _Progress:
    """Progress on stderr."""

    def __init__(self, carried: Share) -> None:
        self.carried = carried
        self._said: int | None = None
        self._said_at = 0.0

    def waits(self, left: InFlight) -> None:
        """Reason for waiting: printed when it changes, and at intervals."""
        now = time.monotonic()
        if left.jobs == self._said and now - self._said_at < SECONDS_BETWEEN_LINES:
            return
        self._said, self._said_at = left.jobs, now
        line = (
            f"closed; waiting for {left.jobs:,} jobs in flight, at most until {in_iso(left.until)}"
        )
        typer.echo(line, err=True)
