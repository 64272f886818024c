"""The whole path through an account that fails at random: nothing is lost, nothing is delivered twice."""

import random
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from carteiro.jobs.kind import Pool
from carteiro.model import State
from carteiro.policy.retry import RetryPolicy
from support.resend_sending import a_provider, key_of
from support.resend_twin import Act, Drop, ResendTwin, Say, SayRaw, Stall, serving
from support.working import always, an_office

MAILS = 40
PATIENT = RetryPolicy(12, timedelta(seconds=1), timedelta(seconds=60))
LIMIT = timedelta(seconds=1)  # only a server that will never answer takes that long, on any machine
FAULTS: tuple[Act, ...] = (
    Drop(),
    Drop(accepts=True),
    Stall(accepts=True),
    Say("application_error"),
    Say("internal_server_error", accepts=True),
    Say("rate_limit_exceeded"),
    SayRaw(502, b"bad gateway", accepts=True),
    SayRaw(200, b"{", accepts=True),
)


@dataclass
class Moody(ResendTwin):
    """Plays a fault in a share of all cases."""

    dice: random.Random = field(default_factory=random.Random)
    share: float = 0.3

    def act(self) -> Act | None:
        """The fault to play for this mail, if any."""
        return self.dice.choice(FAULTS) if self.dice.random() < self.share else None


@pytest.mark.parametrize("seed", range(4))
async def test_mail_is_never_delivered_twice_or_lost(seed: int) -> None:
    """With any delivery guarantee: once if it is SENT, and once at most if it is not."""
    async with (
        an_office() as office,
        serving(Moody(dice=random.Random(seed))) as twin,
        a_provider(twin) as provider,
    ):
        messages = [
            await office.post(
                f"u{number}@example.com",
                delivery="at_most_once" if number % 2 else "at_least_once",
            )
            for number in range(MAILS)
        ]
        kind = office.email_kind(
            provider="resend",
            deliver=provider.deliver,
            replays_for=provider.features.replays_for,
            policy=always(PATIENT),
            call_limit=LIMIT,
        )
        await office.work(Pool("email", 8, (kind,)))
        states = {message: await office.state(message) for message in messages}

    delivered = twin.per_key
    assert set(states.values()) == {State.SENT}
    assert delivered == {key_of(message): 1 for message in messages}
