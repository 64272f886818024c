"""Outcomes of an attempt, and the verdicts on them."""

from datetime import timedelta
from typing import TypeAlias

from carteiro.model.basics import ZERO, value
from carteiro.model.failures import DeadReason, Failure
from carteiro.model.history import Learned


@value
class Taken:
    """The provider took the message; ``refused`` are the addresses whose copies it did not take."""

    provider_id: str
    refused: tuple[tuple[str, Failure], ...] = ()


@value
class Rejected:
    """The provider refused the message permanently."""

    failure: Failure


@value
class Deferred:
    """The provider refused the message for now."""

    failure: Failure
    retry_after: timedelta = ZERO


@value
class NotMade:
    """The call never started: proof that nothing was handed over. It is not charged as a failure."""

    failure: Failure
    wait: timedelta = ZERO


@value
class Unknown:
    """Handed over, without an answer that says whether the provider took it."""

    failure: Failure


Outcome: TypeAlias = Taken | Rejected | Deferred | NotMade | Unknown


@value
class Sent:
    """The message is sent."""

    provider: str
    provider_id: str


@value
class Retry:
    """Try again after the time ``after``; only a charged failure counts against the policy."""

    after: timedelta
    charged: bool
    failure: Failure
    learned: Learned | None = None


@value
class Dead:
    """Give up, and keep the message for a human."""

    reason: DeadReason
    failure: Failure
    charged: bool = False
    learned: Learned | None = None


Verdict: TypeAlias = Sent | Retry | Dead
