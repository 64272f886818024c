"""Which dead letters a command is about: the options that the commands share."""

from dataclasses import dataclass
from typing import Annotated

import typer

from carteiro.cli.desk import Desk
from carteiro.cli.options import Before, OfTenant, Since
from carteiro.model import Category, DeadFilter, DeadReason, KindName


@dataclass(frozen=True)
class Choice:
    """Dead letters by what they have in common; what is not given does not matter."""

    tenant: OfTenant = None
    reason: Annotated[
        DeadReason | None, typer.Option(case_sensitive=False, help="Why it died.")
    ] = None
    code: Annotated[str | None, typer.Option(help="The code of the last failure.")] = None
    category: Annotated[
        Category | None, typer.Option(case_sensitive=False, help="Its category.")
    ] = None
    text: Annotated[str | None, typer.Option(help="In the code, the reason or the address.")] = None
    kind: Annotated[str | None, typer.Option(help="Of this kind: email:send, or a task.")] = None
    since: Since = None
    before: Before = None

    async def as_filter(self, desk: Desk, *, is_redriven: bool | None = None) -> DeadFilter:
        """The same, as stores take it; `NotFound` if there is no such tenant."""
        return DeadFilter(
            tenant=await desk.tenant_asked_for(self.tenant),
            kind=None if self.kind is None else KindName(self.kind),
            reason=self.reason,
            code=self.code,
            category=self.category,
            text=self.text,
            moved_after=self.since,
            moved_before=self.before,
            is_redriven=is_redriven,
        )

    @property
    def is_any(self) -> bool:
        """Whether it is about all there are."""
        return self == Choice()
