"""Changes that applications request by SQL, and that one of our processes applies."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Protocol, TypeAlias

from carteiro.model import MessageId, value

# The wait after a failure: arguments are its number and the row's retries; None: it was the last.
RetryWait: TypeAlias = Callable[[int, int], timedelta | None]

NEWEST_ROWS = 1000


@value
class AppliedChanges:
    """The number of requested changes applied or dropped, and the messages whose jobs changed or ended."""

    count: int
    moved: Sequence[MessageId] = ()


class TableQueue(Protocol):
    """Requested changes, in a store that applications use by SQL.

    Promises, one module each in ``tests/contract/table_queue``:

    once       Each requested change is applied once, by the rules of `carteiro.policy.lifecycle`, by any process.
    ordered    The changes of one message are applied in the order in which they were requested.
    dropped    A change that can no longer be applied is dropped.
    fair       Tenants take turns: many changes of one do not delay those of another.
    first      After the commit of a request, no attempt of its message is declared before it is applied.
    watched    Pending e-mails are counted up to a bound, among the newest ones.
    heard      A request ends the wait of every process.
    """

    def rings(self) -> int:
        """Counter of notified requests: read it before looking for requests, and pass it to `wait`."""

    async def wait(self, timeout: timedelta, *, since: int) -> bool:
        """Return True once the counter is above ``since``, False after ``timeout``."""

    async def has_requests(self) -> bool:
        """True if a requested change is not applied yet."""

    async def pending(self) -> int:
        """The number of unfinished e-mails among the newest `NEWEST_ROWS`; the cost does not depend on the backlog."""

    async def apply(self, wait_after: RetryWait, *, limit: int) -> AppliedChanges:
        """Apply the oldest requested changes of each tenant, at most ``limit``; repeat until none is left."""
