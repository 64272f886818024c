"""The whole path through a relay that fails at random: nothing is lost, and every delivery has its reason."""

import random
import re
from collections import Counter
from datetime import timedelta

import pytest

from carteiro.jobs.kind import Pool
from carteiro.model import MessageId, State
from carteiro.policy.retry import RetryPolicy
from carteiro.providers.smtp.provider import SmtpProvider
from support.smtp_sending import options_for
from support.smtp_server import Act, Drop, Envelope, Say, SmtpServer, Stall, serving
from support.working import LONG, always, an_office

MAILS = 40
PATIENT = RetryPolicy(12, timedelta(seconds=1), timedelta(seconds=60), max_in_doubt_resends=3)
LIMIT = timedelta(milliseconds=100)  # of a server that will never answer
_MESSAGE_ID = re.compile(rb"^Message-ID: <([0-9a-f-]{36})\.1@example\.com>\r$", re.MULTILINE)

FAULTS: dict[str, tuple[Act, ...]] = {
    "greeting": (Drop(), Drop("421 4.3.2 Busy\r\n"), Say("what?\r\n")),
    "EHLO": (Drop(), Drop("421 4.3.2 Busy\r\n")),
    "MAIL": (Drop(), Say("451 4.3.0 Later\r\n"), Drop("421 4.4.2 Bye\r\n")),
    "RCPT": (Drop(), Say("450 4.2.0 Greylisted\r\n"), Stall()),
    "DATA": (Drop(), Say("451 4.3.0 Later\r\n"), Say("250 what?\r\n")),
    "body": (Drop(),),
    "dot": (Drop(), Stall(), Say("451 4.3.0 Later\r\n"), Drop("421 4.3.0 Bye\r\n"), Say("eh?\r\n")),
}


class Moody(SmtpServer):
    """Plays a fault in a share of all cases."""

    def __init__(self, seed: int, share: float) -> None:
        super().__init__()
        self.dice = random.Random(seed)
        self.share = share

    def act(self, stage: str) -> Act | None:
        """The fault to play at this stage, if any."""
        faults = FAULTS.get(stage)
        return self.dice.choice(faults) if faults and self.dice.random() < self.share else None


@pytest.mark.parametrize("seed", range(4))
async def test_every_delivery_is_known_or_in_doubt(seed: int) -> None:
    """A mail arrives once, and once more for each doubt at most; a SENT one has arrived."""
    async with an_office() as office, serving(Moody(seed, 0.08)) as server:
        provider = SmtpProvider(options_for(server, command_limit=LIMIT, reply_limit=LIMIT))
        messages = [await office.post(f"u{number}@example.com") for number in range(MAILS)]
        kind = office.email_kind(
            provider="smtp",
            deliver=provider.deliver,
            policy=always(PATIENT),
            call_limit=LONG,
            close=provider.close,
        )
        await office.work(Pool("email", 8, (kind,)))
        states = {message: await office.state(message) for message in messages}
        stories = {message: await office.story(message) for message in messages}

    arrived = Counter(map(_message_of, server.mails))
    assert set(states.values()) <= {State.SENT, State.FAILED}
    for message in messages:
        doubts = stories[message].count("IN_DOUBT")
        assert arrived[message] <= doubts + (states[message] is State.SENT)
        assert arrived[message] >= (states[message] is State.SENT)
    assert sum(state is State.SENT for state in states.values()) > MAILS / 2


def _message_of(mail: Envelope) -> MessageId:
    found = _MESSAGE_ID.search(mail.content)
    assert found is not None
    return MessageId(found[1].decode())
