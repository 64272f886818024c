"""The error tree. Expected results are values (see `model`); these errors are for what a caller cannot plan for.

CarteiroError
├── ConfigError            a setting is wrong; names it, its source and the allowed values
├── InvalidMessage         a message is malformed; has the fields
│   └── SenderRefused      its From is in a domain that another tenant has claimed
├── TenantMissing          unknown or disabled tenant
├── DomainClaimed          another tenant has claimed the domain; nothing was changed
├── TierUnknown            the tier has no weight; nothing was changed
├── KeyReused              the idempotency key belongs to another request; nothing was stored
├── CannotJoin             the transaction of the connection cannot be joined; nothing was stored
├── BadCursor              the cursor is not from one of our lists
├── TextUnfit              a text that the store cannot hold or search: U+0000, half a surrogate pair
├── FeedbackRefused        the feedback is not from the provider, or is not enabled
├── NotDelivered           a channel could not deliver a notice; it is tried again
│   └── HandedOver         the channel has it, but not its recipient yet; it is asked again
├── DeadlinePassed         a provider call woke up after its deadline, before the hand-over
├── TransitionRefused      a forbidden transition of a message: a bug, nothing was written
├── DeliveryFailed         a classified failure, raised by a task or provider
└── StoreError
    ├── StoreUnavailable   unreachable or not writable now; try again
    │   ├── StoreMoved     closed for good: its messages were or are moved to another store
    │   └── QueueAway      the separate queue is down or full; the store itself works
    ├── StoreFull          no space for new messages; accepted ones still settle
    ├── StoreCorrupt       the file is damaged
    ├── SchemaMismatch     this program cannot use the schema
    ├── CannotBackUp       there is no file to copy, or the target exists
    └── CannotMove         this move is not possible now; the text says what to do
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from carteiro.model import Failure, value


class CarteiroError(Exception):
    """The root of all our errors."""


class ConfigError(CarteiroError):
    """A setting is wrong."""


@contextmanager
def needing_extra(what: str, extra: str) -> Iterator[None]:
    """Say which extra of this package installs a missing library; empty: the library is of another package."""
    try:
        yield
    except ModuleNotFoundError as error:
        way = f"from a clone, pip install -c constraints.txt '.[{extra}]'"
        raise ConfigError(f"{what} {error.name}: {way if extra else 'install it'}") from error


class QueueElsewhere(ConfigError):
    """The store was opened without the queue that running processes use: that would take their jobs."""

    def __init__(self, store: str) -> None:
        text = f"The jobs of {store} are in a separate queue, and running processes use it"
        remedy = "set queue (--queue, CARTEIRO_QUEUE) to the same value as those processes, or stop them first"
        super().__init__(f"{text}: {remedy}")


@value
class FieldError:
    """One wrong field, and why; ``missing``: the field is absent."""

    field: str
    message: str
    missing: bool = False


@value
class NotAccepted:
    """A malformed item of a list; nothing of it was stored."""

    fields: tuple[FieldError, ...]


class InvalidMessage(CarteiroError, ValueError):
    """A message is malformed; nothing was stored."""

    def __init__(self, fields: Sequence[FieldError]) -> None:
        self.fields = list(fields)
        super().__init__("; ".join(f"{each.field}: {each.message}" for each in self.fields))


class SenderRefused(InvalidMessage):
    """The From of a message is in a domain that another tenant has claimed."""


class TenantMissing(CarteiroError, LookupError):
    """Unknown or disabled tenant."""


class DomainClaimed(CarteiroError, ValueError):
    """Another tenant has claimed the domain; nothing was changed."""

    def __init__(self, domain: str, tenant: str) -> None:
        self.domain = domain
        super().__init__(
            f"the domain {domain} is claimed by tenant {tenant!r}: remove it from that tenant's from_domains first"
        )


class TierUnknown(CarteiroError, ValueError):
    """The tier of a tenant has no weight; nothing was changed."""

    def __init__(self, tier: str) -> None:
        self.tier = tier
        super().__init__(
            f"there is no tier {tier!r}: use one listed in [tiers], or add it there and restart"
        )


class KeyReused(CarteiroError):
    """The idempotency key belongs to another request; nothing was stored."""


class CannotJoin(CarteiroError):
    """The transaction of the connection cannot be joined; nothing was stored."""


class BadCursor(CarteiroError, ValueError):
    """The cursor is not from one of our lists."""


class TextUnfit(CarteiroError, ValueError):
    """A text that the store cannot hold or search; nothing was changed."""

    def __init__(self, found: object = "U+0000") -> None:
        super().__init__(f"a text has a character that the store cannot hold: {found}; remove it")


class FeedbackRefused(CarteiroError):
    """The feedback was refused and changes nothing; ``status`` is the HTTP status of the reason."""

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        super().__init__(message)


class NotDelivered(CarteiroError):
    """A channel could not deliver a notice; it is tried again."""


class HandedOver(NotDelivered):
    """A channel has a notice, but not its recipient yet; it is asked again."""


class DeadlinePassed(CarteiroError, TimeoutError):
    """A provider call woke up after its deadline, before the hand-over."""


class TransitionRefused(CarteiroError):
    """A forbidden transition of a message: a bug, nothing was written."""


class DeliveryFailed(CarteiroError):
    """A classified failure; raise it from a task to store exactly this failure."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        super().__init__(failure.reason)


class StoreError(CarteiroError):
    """The store cannot do it."""


class StoreUnavailable(StoreError):
    """Unreachable or not writable now; try again."""


class StoreMoved(StoreUnavailable):
    """Closed for good: its messages were or are moved to another store."""


class QueueAway(StoreUnavailable):
    """The separate queue is down or full; the store itself works."""


class StoreFull(StoreError):
    """No space for new messages; accepted ones still settle."""


class StoreCorrupt(StoreError):
    """The file is damaged."""


class SchemaMismatch(StoreError):
    """The schema is newer than this program, or was made by an unreleased version."""


class CannotBackUp(StoreError):
    """There is no file to copy, or the target exists."""


class CannotMove(StoreError):
    """This move is not possible now; the text says what to do."""
