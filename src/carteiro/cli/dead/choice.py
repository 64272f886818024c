"""The options that select dead letters, shared by the commands."""

from dataclasses import dataclass
from typing import Annotated

import typer

from carteiro.cli.desk import Desk
from carteiro.cli.options import Before, OfTenant, Since
from carteiro.model import Category, DeadFilter, DeadReason, KindName


@dataclass(frozen=True)
class Choice:
    """A selection of dead letters; an option that is not given does not restrict it."""

    tenant: OfTenant = None
    reason: Annotated[
        DeadReason | None, typer.Option(case_sensitive=False, help="Reason of the dead letter.")
    ] = None
    code: Annotated[str | None, typer.Option(help="Code of the last failure.")] = None
    category: Annotated[
        Category | None, typer.Option(case_sensitive=False, help="Category of the last failure.")
    ] = None
    group: Annotated[
        str | None, typer.Option(help="Failure group: carteiro dead group --by group.")
    ] = None
    text: Annotated[
        str | None, typer.Option(help="Text in the code, the reason or the address.")
    ] = None
    kind: Annotated[str | None, typer.Option(help="Kind of job: email:send, or a task.")] = None
    since: Since = None
    before: Before = None

    async def as_filter(self, desk: Desk, *, is_redriven: bool | None = None) -> DeadFilter:
        """The same, for stores; `NotFound` if there is no such tenant."""
        return DeadFilter(
            tenant=await desk.tenant_asked_for(self.tenant),
            kind=None if self.kind is None else KindName(self.kind),
            reason=self.reason,
            code=self.code,
            category=self.category,
            group=self.group,
            text=self.text,
            moved_after=self.since,
            moved_before=self.before,
            is_redriven=is_redriven,
        )

    @property
    def is_any(self) -> bool:
        """True if it selects all dead letters."""
        return self == Choice()
