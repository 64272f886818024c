"""Commands on the archive of dead tickets: options, selection, connection."""

import asyncio
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer
from uuid_utils import uuid7

from carteiro.cli.desk import Command, Work, command_of
from carteiro.cli.exit_codes import NotFound, WrongUse
from carteiro.cli.options import AsJson, Before, ConfigFile, Since, Yes
from carteiro.cli.printing import Printer
from carteiro.config import Settings, load
from carteiro.errors import needing_extra
from carteiro.model import AuditRow, Via, value
from carteiro.policy.audit import harmless, harmless_fields
from carteiro.runtime.acting import act_as, actor, on_this_machine
from carteiro.tickets.archive.document import Archived, ArchiveState, Wanted
from carteiro.tickets.errors import ArchiveAway
from carteiro.tickets.ticket import LONGEST_ID, Reason, is_fit

if TYPE_CHECKING:
    from carteiro.tickets.archive.mongo import MongoArchive

Why = Annotated[str, typer.Option("--why", help="The reason, for the history of each ticket.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the result without any change.")]


@dataclass(frozen=True)
class Common:
    """The options of every command that works on the archive."""

    config: ConfigFile = None
    as_json: AsJson = False


@dataclass(frozen=True)
class Choice:
    """Filter of dead tickets; an option that is not given matches all."""

    task_type: Annotated[str | None, typer.Option(help="Task type.")] = None
    error_type: Annotated[str | None, typer.Option(help="Type of the last error.")] = None
    reason: Annotated[Reason | None, typer.Option(help="Reason of the death.")] = None
    since: Since = None
    before: Before = None

    def wanted(self, *, states: tuple[ArchiveState, ...] | None = None) -> Wanted:
        """Return the filter for the archive; `WrongUse` if nothing could ever match."""
        if self.since is not None and self.before is not None and self.since >= self.before:
            raise WrongUse("nothing lies between --since and --before: the first must be earlier")
        for name, given in (("--task-type", self.task_type), ("--error-type", self.error_type)):
            if given is not None and not is_fit(given):
                raise WrongUse(
                    f"{name} {given!r} is not a name: one word of at most {LONGEST_ID} characters"
                )
        return Wanted(
            type=self.task_type,
            error_type=self.error_type,
            reason=self.reason,
            states=states,
            since=self.since,
            before=self.before,
        )

    @property
    def is_any(self) -> bool:
        """No option narrows it down."""
        return all(getattr(self, each.name) is None for each in fields(Choice))


@dataclass(frozen=True)
class Selection(Choice):
    """Dead tickets to be changed: by id, or all that match."""

    tickets: Annotated[list[str] | None, typer.Argument(metavar="ID", help="The tickets.")] = None
    everything: Annotated[
        bool, typer.Option("--all", help="All tickets that match the options, instead of ids.")
    ] = False
    dry_run: DryRun = False
    yes: Yes = False


@value
class ArchiveSession:
    """An archive with the settings, and a way to print."""

    archive: "MongoArchive"
    settings: Settings
    out: Printer

    async def chosen(self, selection: Selection, states: tuple[ArchiveState, ...]) -> Wanted:
        """These tickets, or with ``--all`` those that match; `NotFound` if one of them is not here."""
        if bool(selection.tickets) == selection.everything:  # all only if that is asked for
            raise WrongUse("name the tickets, or say --all with options that choose some")
        if not selection.tickets:
            return selection.wanted(states=states)
        if not selection.is_any:
            raise WrongUse("name the tickets, or choose them by options with --all: not both")
        ids = tuple(dict.fromkeys(selection.tickets))
        for each in ids:
            await self.known_ticket(each)
        return Wanted(ids=ids)

    async def record(
        self, action: str, wanted: Wanted, before: Mapping[str, object], **after: object
    ) -> None:
        """Record a change of tickets, before it is made: a change without its row is not possible."""
        who, ids = actor(), wanted.ids or ()
        chosen = {name: each for name, each in asdict(wanted).items() if each is not None}
        row = AuditRow(
            id=str(uuid7()),
            at=datetime.now(UTC),
            via=who.via,
            who=harmless(who.who),
            key_id=None,
            origin=harmless(who.origin),
            action=action,
            kind="dead ticket",
            object=harmless(ids[0]) if len(ids) == 1 else "",
            tenant=None,
            before=harmless_fields(before),
            after=harmless_fields({"chosen": chosen} | after),
        )
        await self.archive.note(row, kept=self.settings.retention.audit)

    async def known_ticket(self, given: str) -> Archived:
        """The ticket of this id; `NotFound` if there is none."""
        found = await self.archive.show(given)
        if found is None:
            text = f"there is no dead ticket {given!r} in the archive: carteiro tickets dlq ls shows the newest"
            raise NotFound(text)
        return found


def at_the_archive(work: Work) -> Command:
    """Make a command of a coroutine function that wants a `ArchiveSession`: adds the `Common` options."""

    def begin(common: Common, options: Mapping[str, object]) -> None:
        settings = load(file=common.config)
        asyncio.run(_at_the_archive(work, settings, Printer(as_json=common.as_json), options))

    return command_of(work, Common, begin)


async def _at_the_archive(
    work: Work, settings: Settings, printer: Printer, options: Mapping[str, object]
) -> None:
    with needing_extra("Tickets need", "tickets"):
        from carteiro.tickets.archive.mongo import MongoArchive  # noqa: PLC0415 - dear, and not for all

    act_as(on_this_machine(Via.CLI))
    archive = MongoArchive(settings.tickets)
    try:
        await work(ArchiveSession(archive, settings, printer), **options)
    except ArchiveAway as error:
        raise ArchiveAway(
            f"{error}. Check that it runs and accepts the credentials; tickets.mongo (from "
            f"{settings.origin('tickets.mongo')}) says where it is"
        ) from error
    finally:
        await archive.close()
