"""Figures by minute and by hour."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Protocol

from carteiro.model import TenantId
from carteiro.model.figures import Figures, Span, Split


class Rollups(Protocol):
    """Counters of events (see `carteiro.policy.rollups`): a store notes them with every list that it stores.

    Promises, one module each in ``tests/contract/rollups``:

    counted   Each accept, attempt and end is counted once, by what was stored; repeated and late results add nothing.
    folded    Every note is added to its minute and its hour exactly once, and is in the totals before and after.
    bounded   A past minute or hour keeps the most active tenants and templates; totals stay exact.
              Minutes and hours are deleted after their retention.
    isolated  The figures of a tenant are its own, and are deleted with it.
    """

    async def total(
        self, span: Span, back: timedelta, *, tenant: TenantId | None = None
    ) -> Figures:
        """The sums of the latest minutes or hours: those that begin after ``back`` ago, and the one before."""

    async def split(
        self, by: Split, span: Span, back: timedelta, *, tenant: TenantId | None = None
    ) -> Mapping[str, Figures]:
        """As `total`, by tenant, by provider, or of one tenant by template type."""

    async def see(self, figures: Figures) -> None:
        """Note figures of the whole installation."""

    async def fold(self, *, limit: int, most: int) -> int:
        """Add the oldest ``limit`` notes to their minutes and hours, and return their number.

        Of a past minute or hour, ``most`` tenants and ``most`` templates are kept.
        """

    async def prune(self, *, minutes: timedelta, hours: timedelta, limit: int) -> int:
        """Delete at most ``limit`` minutes, and as many hours, that are older than this; return their number."""
