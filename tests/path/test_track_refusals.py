"""Provider answers suppress addresses that do not exist, and no other."""

from functools import partial
from typing import Any

import pytest

from carteiro.errors import StoreUnavailable
from carteiro.jobs.kind import Pool
from carteiro.model import (
    Deferred,
    MessageId,
    Outcome,
    Rejected,
    State,
    SuppressionReason,
    Taken,
    TenantId,
)
from carteiro.path.track import learn_refusals
from carteiro.policy.classify import classify_smtp
from carteiro.policy.retry import RetryPolicy
from carteiro.policy.stage import Stage
from carteiro.ports import Handover, Parcel
from support.builders import ACME, BRASA
from support.working import Office, always, an_office

NOBODY = classify_smtp("550 5.1.1 No such user", stage=Stage.RCPT)
FULL = classify_smtp("552 5.2.2 Mailbox full", stage=Stage.RCPT)
SPAM = classify_smtp("550 5.7.1 Message looks like spam", stage=Stage.DOT)
ONCE = RetryPolicy(max_attempts=1)


async def sent(office: Office, outcome: Outcome, **fields: Any) -> MessageId:
    """A message with this outcome."""

    async def deliver(_parcel: Parcel, handover: Handover) -> Outcome:
        handover.begin()
        return outcome

    learn = partial(learn_refusals, suppressions=office.backend.suppressions)
    kind = office.email_kind(deliver=deliver, learn=learn, policy=always(ONCE))
    message = await office.post("ana@example.com", **fields)
    await office.work(Pool("email", 1, (kind,)))
    return message


async def reasons(
    office: Office, tenant: str = ACME
) -> list[tuple[str | None, SuppressionReason, bool]]:
    """The recorded suppressions."""
    page = await office.backend.suppressions.list(TenantId(tenant))
    return [(each.address, each.reason, each.is_active) for each in page.rows]


async def test_unknown_recipient_is_not_sent_to_again() -> None:
    """By that tenant; the next message ends before it is sent."""
    async with an_office() as office:
        await sent(office, Rejected(NOBODY))
        again = await sent(office, Taken("1"))

        assert await reasons(office) == [("ana@example.com", SuppressionReason.HARD_BOUNCE, True)]
        assert await reasons(office, BRASA) == []
        assert await office.state(again) is State.FAILED
        assert (await office.letter(again)).failure.code == "SUPPRESSED"


async def test_recipient_unknown_after_the_content_is_only_counted() -> None:
    """It was accepted at RCPT: a later answer may be a filter's, or of another hop."""
    async with an_office() as office:
        await sent(office, Rejected(classify_smtp("550 5.1.1 No such user", stage=Stage.DOT)))

        assert await reasons(office) == [("ana@example.com", SuppressionReason.SOFT_BOUNCE, False)]


async def test_full_mailbox_is_counted_when_the_message_is_given_up() -> None:
    """Not at each attempt."""
    async with an_office() as office:
        await sent(office, Deferred(FULL))

        assert await reasons(office) == [("ana@example.com", SuppressionReason.SOFT_BOUNCE, False)]


@pytest.mark.parametrize("outcome", [Rejected(SPAM), Taken("1")])
async def test_failure_of_another_cause_does_not_count_against_the_recipient(
    outcome: Outcome,
) -> None:
    """Nothing is recorded."""
    async with an_office() as office:
        await sent(office, outcome)

        assert await reasons(office) == []


async def test_refused_copy_is_suppressed_alone() -> None:
    """The mail went to the others."""
    async with an_office() as office:
        message = await sent(
            office, Taken("1", (("bia@example.com", NOBODY),)), cc=["bia@example.com"]
        )

        assert await office.state(message) is State.SENT
        assert await reasons(office) == [("bia@example.com", SuppressionReason.HARD_BOUNCE, True)]


COPIES = {"cc": ["bia@example.com"], "bcc": ["eva@example.com"]}


@pytest.mark.parametrize(
    ("reply", "stage", "suppressed"),
    [
        ("550 5.1.1 No such user", Stage.DOT, []),
        ("550 5.1.1 <bia@example.com> No such user", Stage.DOT, ["bia@example.com"]),
        ("550 5.1.1 No such user: EVA@Example.com.", Stage.DOT, ["eva@example.com"]),
        ("550 5.1.1 <joana@example.com> No such user", Stage.DOT, []),
        ("550 5.1.1 ana@example.com, bia@example.com: No such users", Stage.DOT, []),
        ("550 5.1.1 No such user", Stage.RCPT, ["ana@example.com"]),
    ],
)
async def test_with_copies_only_a_named_recipient_is_suppressed(
    reply: str, stage: Stage, suppressed: list[str]
) -> None:
    """After the final dot an answer may be about any of them; to RCPT it is about the named one."""
    async with an_office() as office:
        await sent(office, Rejected(classify_smtp(reply, stage=stage)), **COPIES)

        assert [address for address, _, _ in await reasons(office)] == suppressed


async def test_copy_to_the_recipient_itself_is_the_same_address() -> None:
    async with an_office() as office:
        gone = classify_smtp("550 5.1.1 No such user", stage=Stage.DOT)
        await sent(office, Rejected(gone), cc=["ANA@example.com"])

        assert [address for address, _, _ in await reasons(office)] == ["ana@example.com"]


async def test_unreachable_store_does_not_stop_the_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The message is settled by then; the next one to that address gets the same answer."""
    async with an_office() as office:

        async def away(*_: object, **__: object) -> int:
            raise StoreUnavailable("away")

        monkeypatch.setattr(office.backend.suppressions, "put", away)
        message = await sent(office, Rejected(NOBODY))

        assert await office.state(message) is State.FAILED
