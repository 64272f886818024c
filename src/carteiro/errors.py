"""The error tree. Expected results are values (see `model`); these are for what a caller cannot plan for.

CarteiroError
├── ConfigError            a setting is wrong; says which, where it came from and what is allowed
├── InvalidMessage         what was to be sent is malformed; carries the fields
│   └── SenderRefused      its From is of a domain that another tenant has claimed
├── TenantMissing          no such tenant, or one that is disabled
├── DomainClaimed          another tenant has claimed the domain; nothing was changed
├── TierUnknown            no tier of this name has a weight; nothing was changed
├── KeyReused              an idempotency key stands for another request; nothing was stored
├── CannotJoin             a connection whose transaction cannot be joined; nothing was stored
├── BadCursor              a cursor that no list gave out
├── TextUnfit              a text that the store can neither hold nor look for: U+0000, half a surrogate pair
├── FeedbackRefused        it is not the provider that tells something of a mail, or nobody is to tell it
├── DeadlinePassed         a provider call woke up after its deadline, before the hand-over
├── TransitionRefused      a message was to move where it must not: a bug, nothing was written
├── DeliveryFailed         a task or provider says what is wrong, already classified
└── StoreError
    ├── StoreUnavailable   cannot be reached or written now; try again
    │   ├── StoreMoved     closed for good: its messages go to another store, or went there
    │   └── QueueAway      the queue beside the store is away or full; the store itself goes on
    ├── StoreFull          no room for new messages; what is accepted already still settles
    ├── StoreCorrupt       the file is damaged
    ├── SchemaMismatch     the schema is not one that this program can use
    ├── CannotBackUp       there is no file to copy, or the target is there already
    └── CannotMove         not from there, not to there, or not as things stand; says what to do
"""

from collections.abc import Sequence

from carteiro.model import Failure, value


class CarteiroError(Exception):
    """The root of all our errors."""


class ConfigError(CarteiroError):
    """A setting is wrong."""


class QueueElsewhere(ConfigError):
    """The store was opened without the queue that others use right now: it would take the jobs away from them."""

    def __init__(self, store: str) -> None:
        text = (
            f"The jobs of {store} are in a queue elsewhere, and a process that uses it is running"
        )
        remedy = (
            "set queue (--queue, CARTEIRO_QUEUE) as it is set there, or stop all that use it first"
        )
        super().__init__(f"{text}: {remedy}")


@value
class FieldError:
    """One field that is wrong, and why; ``missing`` parts what is absent from what is bad."""

    field: str
    message: str
    missing: bool = False


@value
class NotAccepted:
    """One of many that was malformed; nothing of it was stored."""

    fields: tuple[FieldError, ...]


class InvalidMessage(CarteiroError, ValueError):
    """What was to be sent is malformed; nothing was stored."""

    def __init__(self, fields: Sequence[FieldError]) -> None:
        self.fields = list(fields)
        super().__init__("; ".join(f"{each.field}: {each.message}" for each in self.fields))


class SenderRefused(InvalidMessage):
    """The From of what was to be sent is of a domain that another tenant has claimed."""


class TenantMissing(CarteiroError, LookupError):
    """No such tenant, or one that is disabled."""


class DomainClaimed(CarteiroError, ValueError):
    """A domain that is to be a tenant's belongs to another; nothing was changed."""

    def __init__(self, domain: str, tenant: str) -> None:
        self.domain = domain
        super().__init__(
            f"the domain {domain} is claimed by tenant {tenant!r}: take it from that tenant's from_domains first"
        )


class TierUnknown(CarteiroError, ValueError):
    """A tenant's tier has no weight; nothing was changed."""

    def __init__(self, tier: str) -> None:
        self.tier = tier
        super().__init__(
            f"there is no tier {tier!r}: name one that [tiers] has, or add it there and restart"
        )


class KeyReused(CarteiroError):
    """An idempotency key stands for another request; nothing was stored."""


class CannotJoin(CarteiroError):
    """A connection whose transaction cannot be joined; nothing was stored."""


class BadCursor(CarteiroError, ValueError):
    """A cursor that no list gave out."""


class TextUnfit(CarteiroError, ValueError):
    """A text that the store can neither hold nor look for; nothing was changed."""

    def __init__(self, found: object = "U+0000") -> None:
        super().__init__(f"a text has what the store cannot hold: {found}")


class FeedbackRefused(CarteiroError):
    """What was posted as a provider's feedback changes nothing; ``status`` is the HTTP status that says why."""

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        super().__init__(message)


class DeadlinePassed(CarteiroError, TimeoutError):
    """A provider call woke up after its deadline, before the hand-over."""


class TransitionRefused(CarteiroError):
    """A message was to move where it must not: a bug, nothing was written."""


class DeliveryFailed(CarteiroError):
    """Raise it from a task to say what is wrong yourself: it is stored as it stands."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        super().__init__(failure.reason)


class StoreError(CarteiroError):
    """The store cannot do it."""


class StoreUnavailable(StoreError):
    """Cannot be reached or written now; try again."""


class StoreMoved(StoreUnavailable):
    """Closed for good: its messages go to another store, or went there."""


class QueueAway(StoreUnavailable):
    """The queue beside the store is away or full; the store itself goes on."""


class StoreFull(StoreError):
    """No room for new messages; what is accepted already still settles."""


class StoreCorrupt(StoreError):
    """The file is damaged."""


class SchemaMismatch(StoreError):
    """The schema is newer than this program, or was made by an unreleased version."""


class CannotBackUp(StoreError):
    """There is no file to copy, or the target is there already."""


class CannotMove(StoreError):
    """Not from there, not to there, or not as things stand; says what to do."""
