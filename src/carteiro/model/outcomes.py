"""What a provider said of an attempt, and what we decide."""

from datetime import timedelta
from typing import TypeAlias

from carteiro.model.basics import ZERO, value
from carteiro.model.failures import DeadReason, Failure


@value
class Taken:
    """The provider took the message over; ``refused`` are the copies, by address, that it did not take."""

    provider_id: str
    refused: tuple[tuple[str, Failure], ...] = ()


@value
class Rejected:
    """The provider said no, for good."""

    failure: Failure


@value
class Deferred:
    """The provider said: not now."""

    failure: Failure
    retry_after: timedelta = ZERO


@value
class NotMade:
    """The call never started: proof that nothing was handed over, and nobody's failure."""

    failure: Failure
    wait: timedelta = ZERO


@value
class Unknown:
    """Handed over, and no answer came that says what became of it."""

    failure: Failure


Outcome: TypeAlias = Taken | Rejected | Deferred | NotMade | Unknown


@value
class Sent:
    """It is done."""

    provider: str
    provider_id: str


@value
class Retry:
    """Try again ``after`` a while; only a charged failure counts against the policy."""

    after: timedelta
    charged: bool
    failure: Failure


@value
class Dead:
    """Give up, and keep it for people."""

    reason: DeadReason
    failure: Failure
    charged: bool = False


Verdict: TypeAlias = Sent | Retry | Dead
