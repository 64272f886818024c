"""Figures by minute and by hour."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Protocol

from carteiro.model import ZERO, TenantId
from carteiro.model.figures import Figures, ServedShare, Span, Split, TemplateResult


class Rollups(Protocol):
    """Counters of events (see `carteiro.policy.rollups`): a store notes them with every list that it stores.

    Promises, one module each in ``tests/contract/rollups``:

    counted   Each accept, attempt and end is counted once, by what was stored; repeated and late results add nothing.
    folded    Every note is added to its minute and its hour exactly once, and is in the totals before and after.
    bounded   A past minute or hour keeps the most active tenants and templates; totals stay exact.
              Minutes and hours are deleted after their retention.
    watched   The last hour by minute, and the templates that fail most, are read from folded figures alone: the cost
              does not depend on the number of notes.
    isolated  The figures of a tenant are its own, and are deleted with it.
    """

    async def total(
        self, span: Span, back: timedelta, *, tenant: TenantId | None = None
    ) -> Figures:
        """The sums of the latest minutes or hours: those that begin after ``back`` ago, and the one before."""

    async def split(
        self, by: Split, span: Span, back: timedelta, *, tenant: TenantId | None = None
    ) -> Mapping[str, Figures]:
        """As `total`, by tenant, by provider, or of one tenant by template type: the 50 with the most messages."""

    async def minutes(self, back: timedelta, *, until: timedelta = ZERO) -> dict[datetime, Figures]:
        """The folded figures of all messages by minute, from ``back`` ago until ``until`` ago, both included."""

    async def shares(self, span: Span, back: timedelta, *, tenant: TenantId) -> list[ServedShare]:
        """The share of a tenant in the folded figures by minute or hour, from ``back`` ago, oldest first.

        Of those in which anything ended. Weights are those of now, and Carteiro's own tenant is left out.
        """

    async def worst(self, back: timedelta, *, least: int, limit: int) -> list[TemplateResult]:
        """The templates with the largest share of failed messages, of those with at least ``least`` finished ones.

        The worst of each tenant come first, then the second of each: one tenant does not push out the others.
        """

    async def see(self, figures: Figures) -> None:
        """Note figures of the whole installation."""

    async def fold(self, *, limit: int, most: int) -> int:
        """Add the oldest ``limit`` notes to their minutes and hours, and return their number.

        Of a past minute or hour, ``most`` tenants and ``most`` templates are kept.
        """

    async def prune(self, *, minutes: timedelta, hours: timedelta, limit: int) -> int:
        """Delete at most ``limit`` minutes, and as many hours, that are older than this; return their number."""
