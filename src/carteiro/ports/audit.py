"""The record of who changed what."""

from collections.abc import Mapping
from typing import Any, Protocol

from carteiro.model import AuditFilter, AuditRow, Cursor, Page, TenantId


class Audit(Protocol):
    """Audit rows. Every port writes its own, in the transaction of the change; only retention deletes them.

    Promises, one module each in ``tests/contract/audit``:

    recorded  A change by a person or by upkeep leaves a row with who, what, when and from where, before and after;
              if the row cannot be written, nothing is changed. A refused change leaves none, except one by `note`.
    harmless  A row holds ids, field names and settings: no content, no address, no secret, whatever a name holds.
    kept      Rows outlive what they are about, an erased tenant too, until their retention is over.
    listed    Pages have no gaps and no duplicates, newest first; a filter finds all that match.
    """

    async def note(  # noqa: PLR0913 - what a row says
        self,
        action: str,
        kind: str,
        identity: str,
        *,
        round: int,
        tenant: TenantId | None = None,
        before: Mapping[str, Any] | None = None,
        after: Mapping[str, Any] | None = None,
    ) -> None:
        """Record a change of the current actor that has no transaction of its own; call it before the change.

        Repetitions by the same actor in the same ``round`` of the object are one row.
        """

    async def list(
        self, wanted: AuditFilter, *, cursor: Cursor | None = None, limit: int = 100
    ) -> Page[AuditRow]:
        """The matching rows, newest first."""
