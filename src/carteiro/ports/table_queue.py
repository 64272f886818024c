"""Changes that applications request by SQL, and that a process of ours applies."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Protocol, TypeAlias

from carteiro.model import MessageId, value

# The wait after failure number so many (the first) of a row with so many retries (the second); None: it was the last.
RetryWait: TypeAlias = Callable[[int, int], timedelta | None]


@value
class AppliedChanges:
    """How many requested changes were applied or dropped, and the messages whose jobs moved or went."""

    count: int
    moved: Sequence[MessageId] = ()


class TableQueue(Protocol):
    """What only a store that applications reach by SQL has.

    Promises, one module each in ``tests/contract/table_queue``:

    once       Each requested change is applied once, by the rules of `carteiro.policy.lifecycle`, whoever applies it.
    ordered    The changes of one message are applied in the order in which they were requested.
    dropped    A change that can no longer be applied is dropped.
    fair       Tenants take turns: however many changes one has requested, those of another do not wait for them.
    first      From the commit of a request on, no attempt of its message is declared before it is applied.
    heard      A request ends the wait of every process.
    """

    def rings(self) -> int:
        """How often a request was heard of: to be asked before looking for some, and given to `wait`."""
        ...

    async def wait(self, timeout: timedelta, *, since: int) -> bool:
        """Return True once more requests were heard of than ``since``, False after ``timeout``."""
        ...

    async def has_requests(self) -> bool:
        """Whether any change is requested and not applied."""
        ...

    async def apply(self, wait_after: RetryWait, *, limit: int) -> AppliedChanges:
        """Apply the oldest requested changes of each tenant, at most ``limit``; ask again until it applied none."""
        ...
