"""Failure groups: messages that fail alike."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Protocol

from carteiro import model


class Failures(Protocol):
    """Groups of failures (see `carteiro.policy.grouping`), from the notes of `Rollups`: its `fold` adds them up.

    Promises, one module each in ``tests/contract/failures``:

    grouped   Each failed attempt and each death is counted once in the group of its cause, folded or not: by hour,
              and by tenant. The success of a first attempt adds nothing.
    followed  Each retry is counted once in the history of the group whose failure it follows: whether it was sent, at
              which attempt, and how long after the failure; and each message that is lost with its last one.
    moved     A state stays until somebody changes it. A resolved group opens again with the next failure, and only
              then. Every change has an audit row.
    bounded   Groups, tenants of an hour and sample messages have a maximum; totals of a group stay exact. Of open
              groups, tenants take turns: a tenant with many displaces its own. Groups that people have dealt with
              have a maximum of their own.
    isolated  A tenant sees only groups of its own failures, with its own counts, times and samples. They are deleted
              with the tenant.
    """

    async def list(
        self,
        wanted: model.FailureFilter = model.FailureFilter(),  # noqa: B008 - a value, never changed
        *,
        cursor: model.Cursor | None = None,
        limit: int = 100,
    ) -> model.Page[model.FailureGroup]:
        """The matching groups, most recently seen first."""

    async def show(
        self, group: str, *, tenant: model.TenantId | None = None
    ) -> model.FailureReport | None:
        """One group, up to 48 hours before it was last seen; None if there is none, or the tenant has no part in it."""

    async def hours(
        self, groups: Sequence[str], *, tenant: model.TenantId | None = None
    ) -> Mapping[str, Sequence[model.HourOfFailures]]:
        """The folded failures of these groups in the last 48 hours, by hour, oldest first; without any: left out."""

    async def histories(
        self, groups: Sequence[str] = (), *, least: int = 1
    ) -> Sequence[model.GroupHistory]:
        """Histories of messages that failed in these groups (default: in any) and were tried again.

        Only of groups with at least ``least`` results.
        """

    async def tenant_histories(
        self, *, least: int, limit: int
    ) -> Sequence[tuple[str, model.TenantId, model.History]]:
        """Group, tenant and history with at least ``least`` results, the most first; notes are not in them."""

    async def move(self, group: str, state: model.GroupState) -> model.FailureGroup | None:
        """Change the state, and return the group as it is then; None if there is none.

        A resolved group cannot be acknowledged: it stays as it is, to open again when it recurs.
        """

    async def prune(self, *, older: timedelta, limit: int) -> int:
        """Delete hours, at most ``limit``, and groups that are older than this; return the number of hours."""
