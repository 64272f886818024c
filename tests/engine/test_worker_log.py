"""The log of a worker: the lines of its messages, and the data it never shows."""

import re
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, TypeAlias

import pytest

from carteiro.jobs.confirmation import Confirmation
from carteiro.jobs.kind import Pool
from carteiro.model import CancelAnswer, Deferred, MessageId, Outcome, Taken
from carteiro.ports import Handover, Parcel
from carteiro.providers.sandbox.provider import REPLIES
from support.builders import ACME, a_failure
from support.clock import past
from support.steps import added_key, claimed_alone, declare
from support.working import (
    LONG,
    SECRET_BODY,
    SECRET_NAME,
    SECRET_SUBJECT,
    Away,
    Office,
    an_office,
    logged,
)

Scenario: TypeAlias = Callable[[Office], Awaitable[None]]
KEY = "key-5d0c"
ADDRESS = re.compile(r"[\w.+-]{2,}@\w")  # a masked one has a single letter before its stars
PLAYED = [
    name.replace("-N", "-2").replace("-SECONDS", "-0.001").replace("-PERCENT", "-50")
    for name in REPLIES
]


pytestmark = pytest.mark.usefixtures("impatient")


def email_pool(office: Office, **changes: Any) -> Pool:
    """E-mail through a kind with these changes."""
    return Pool("email", 5, (office.email_kind(**changes),))


async def every_reply(office: Office) -> None:
    """Each address of the sandbox."""
    for local in PLAYED:
        await office.post(f"{local}@sandbox.test")
    await office.work()


async def unfit(office: Office) -> None:
    """Each validation that fails."""
    await office.post_raw(f'{{"subject": "{SECRET_SUBJECT}"}}')
    await office.post_raw(f'{{"to": "{SECRET_NAME}", "subject": "s", "text": "{SECRET_BODY}"}}')
    await office.post(html=f"<script>{SECRET_BODY}</script>")
    await office.post(recipient={"recipientId": "nobody", "email": "ok@sandbox.test"})
    await office.work()


async def expired(office: Office) -> None:
    """Expired while waiting, and expired by a late failure."""
    await office.post("full-552@sandbox.test", ttl=1500)
    await office.work()
    await office.post(ttl=1000)
    office.clock.advance(timedelta(seconds=1))
    await office.work()


async def in_doubt(office: Office) -> None:
    """Found open twice."""
    await office.post()
    for _ in range(2):
        await declare(office.backend.store, await claimed_alone(office.backend.store))
        office.clock.advance(past(LONG * 2))
    await office.work()


async def cancelled(office: Office) -> None:
    """Cancelled while the provider is being called, and while it is in doubt."""
    message = await office.post()

    async def provider(_parcel: Parcel, _handover: Handover) -> Outcome:
        answers = await office.backend.store.cancel([message], tenant=ACME)
        assert answers == [CancelAnswer.REQUESTED]
        return Deferred(a_failure())

    await office.work(email_pool(office, deliver=provider))
    doubtful = await office.post()
    await declare(office.backend.store, await claimed_alone(office.backend.store))
    await office.backend.store.cancel([doubtful], tenant=ACME)
    office.clock.advance(past(LONG * 2))
    await office.work()


async def late(office: Office) -> None:
    """Answered after the hold."""
    await office.post()

    async def asleep(parcel: Parcel, handover: Handover) -> Outcome:
        handover.begin()
        office.clock.advance(past(LONG * 2))
        await office.backend.store.reap(limit=1)
        return Taken(f"late-{parcel.message}")

    await office.work(email_pool(office, deliver=asleep))


async def store_away(office: Office) -> None:
    """A store that is unreachable now and then."""
    await office.post()
    await office.work(store=Away(office.backend.store, claim=1, declare=1, settle=1))


async def quoted(office: Office) -> None:
    """A provider that breaks, and quotes the recipient in its error."""
    await office.post()

    async def provider(parcel: Parcel, _handover: Handover) -> Outcome:
        raise ConnectionError(f"cannot deliver to <{parcel.content.to}>, {SECRET_NAME}@example.com")

    await office.work(email_pool(office, deliver=provider))


async def broken(office: Office) -> None:
    """A bug whose error quotes the message."""
    await office.post()

    def confirm(job: Any) -> Confirmation:
        raise ValueError(job.content)

    await office.work(email_pool(office, confirm=confirm))


SCENARIOS: list[Scenario] = [
    every_reply,
    unfit,
    expired,
    in_doubt,
    cancelled,
    late,
    store_away,
    quoted,
    broken,
]


async def told(scenario: Scenario) -> tuple[list[dict[str, Any]], Counter[MessageId]]:
    """The lines of a scenario, and the number of attempts of its messages."""
    attempts: Counter[MessageId] = Counter()
    async with an_office() as office:
        await added_key(office.backend, KEY)
        with logged() as lines:
            await scenario(office)
        for line in lines:
            if "outboxId" in line:
                row = await office.row(line["outboxId"])
                attempts[row.id] = row.attempts
    return lines, attempts


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
async def test_line_never_shows_an_address_a_subject_a_body_or_a_key(scenario: Scenario) -> None:
    """In any event: logs travel further than messages do."""
    lines, _ = await told(scenario)

    text = str(lines)
    assert lines
    assert not ADDRESS.search(text), ADDRESS.findall(text)
    for secret in (SECRET_SUBJECT, SECRET_BODY, SECRET_NAME, KEY):
        assert secret not in text


@pytest.mark.parametrize("scenario", [every_reply, unfit, expired, store_away, quoted])
async def test_every_attempt_has_one_info_line(scenario: Scenario) -> None:
    """As many as the ledger counts: also the last one, one in doubt and one that expired."""
    lines, attempts = await told(scenario)

    finished = [line for line in lines if line["event"] == "attempt.finished"]
    assert {line["level"] for line in finished} <= {"info"}
    assert Counter(line["outboxId"] for line in finished) == +attempts
    numbers = Counter((line["outboxId"], line["attempt"]) for line in finished)
    assert set(numbers.values()) <= {1}


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
async def test_every_line_of_a_message_has_its_ids(scenario: Scenario) -> None:
    """One search finds everything about a message."""
    lines, _ = await told(scenario)

    for line in (line for line in lines if "outboxId" in line):
        assert line["jobId"] == line["outboxId"]
        assert (line["requestId"], line["companyId"]) == ("request-1", ACME)
        assert {"level", "message", "timestamp", "attempt", "state", "durationMs"} <= line.keys()


async def test_sent_message_is_found_by_its_provider_id() -> None:
    """It is on the line of the attempt, and nowhere else."""
    async with an_office() as office:
        sent = await office.post("ok@sandbox.test")
        await office.post("bounce-550@sandbox.test")

        with logged() as lines:
            await office.work()

        [mail] = await office.backend.inbox.list(message=sent)
    told = {
        line["outboxId"]: line["providerMessageId"] for line in lines if "providerMessageId" in line
    }
    assert told == {sent: mail.provider_id}


async def test_retry_line_follows_each_retryable_failure() -> None:
    """As a warning, with the needed fields; the last failure has a death line instead."""
    async with an_office() as office:
        message = await office.post("full-552@sandbox.test")
        with logged() as lines:
            await office.work()

        waits = [
            event.metadata["backoffDelay"]
            for event in await office.events(message)
            if event.type == "RETRY_SCHEDULED"
        ]
    retries = [line for line in lines if line["message"] == "Job failed, scheduling retry"]
    assert [line["attempt"] for line in retries] == [1, 2, 3, 4]
    assert [line["nextRetryDelay"] for line in retries] == waits
    for line in retries:
        assert (line["level"], line["maxAttempts"], line["state"]) == ("warn", 5, "RETRY_SCHEDULED")
        assert (line["errorCode"], line["isRetryable"]) == ("552", True)
        assert line["errorReason"] == "552 5.2.2 Mailbox full"
    assert [line["event"] for line in lines][-2:] == ["message.died", "worker.stopped"]


async def test_cancelled_message_has_no_retry_line() -> None:
    lines, _ = await told(cancelled)

    assert "retry.scheduled" not in [line["event"] for line in lines]
    states = [line["state"] for line in lines if line["event"] == "attempt.finished"]
    assert states == ["CANCELLED"]
