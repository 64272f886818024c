"""CPU-bound stages: they neither block the event loop nor crash their worker."""

import random
import threading
from typing import Any, NoReturn

import pytest
import selectolax.lexbor

from carteiro.jobs.confirmation import Confirmation
from carteiro.jobs.kind import Pool
from carteiro.model import (
    DeadReason,
    Deferred,
    EventType,
    LeasedJob,
    Outcome,
    Rejected,
    State,
    Unknown,
)
from carteiro.path.confirm import confirm
from carteiro.policy import html as judge
from carteiro.ports import Handover, Parcel
from support.builders import a_failure
from support.working import Office, an_office, logged


class BrokenChance(random.Random):
    """Classifying an outcome fails."""

    def random(self) -> NoReturn:
        raise ZeroDivisionError


def pool(office: Office, **changes: Any) -> Pool:
    """E-mail through the sandbox, with these fields of `Kind`."""
    return Pool("email", 5, (office.email_kind(**changes),))


@pytest.mark.parametrize(
    ("html", "ends"),
    [
        ("<svg></svg><p>an onclick = x</p>", State.SENT),
        ("<svg><style>p{width:exp<!-- -->ression(1)}</style></svg>", State.FAILED),
    ],
)
async def test_suspicious_html_is_parsed_off_the_event_loop(
    monkeypatch: pytest.MonkeyPatch, html: str, ends: State
) -> None:
    """Other jobs go on meanwhile."""
    threads = []

    def parse(source: str) -> selectolax.lexbor.LexborHTMLParser:
        threads.append(threading.current_thread())
        return selectolax.lexbor.LexborHTMLParser(source)

    monkeypatch.setattr(judge, "LexborHTMLParser", parse)
    async with an_office() as office:
        message = await office.post(html=html)

        await office.work()

        assert await office.state(message) is ends
    assert len(threads) == 1
    assert threading.main_thread() not in threads


async def test_long_mail_is_validated_and_sent() -> None:
    """With and without suspicious text."""
    async with an_office() as office:
        good = await office.post(html="<p>Bom dia</p>" * 5_000)
        bad = await office.post(html="<p>Bom dia</p>" * 5_000 + "<p onclick=x>")

        await office.work()

        assert await office.state(good) is State.SENT
        assert await office.dead_for(bad) is DeadReason.VALIDATION_FAILED


async def test_reference_of_thousands_of_digits_crashes_nothing() -> None:
    """It is validated like any other mail, on its first claim."""
    async with an_office() as office:
        message = await office.post(html="<p>&#" + "1" * 5_000)

        with logged() as lines:
            await office.work()

        assert await office.state(message) is State.SENT
        assert not [line for line in lines if line["event"] == "unexpected"]


async def test_error_in_confirm_is_a_verdict_on_its_message() -> None:
    """The first claim ends it, the error is logged, and the other messages are sent."""

    def broken(job: LeasedJob) -> Confirmation:
        if "broken" in (job.content or ""):
            raise ZeroDivisionError
        return confirm(job)

    async with an_office() as office:
        bad = await office.post("broken@sandbox.test")
        good = await office.post()

        with logged() as lines:
            await office.work(pool(office, confirm=broken))

        assert await office.state(good) is State.SENT
        assert await office.dead_for(bad) is DeadReason.VALIDATION_FAILED
        failed = await office.event(bad, EventType.VALIDATION_FAILED)
        assert failed.metadata["errorCode"] == "INVALID_TEMPLATE"
        [line] = [line for line in lines if line["event"] == "unexpected"]
        assert line["where"] == "confirm"


async def test_error_in_rendering_is_a_verdict_on_its_message() -> None:
    """An e-mail of the table queue is rendered by its worker."""

    async def render(*_: object, **__: object) -> NoReturn:
        raise ZeroDivisionError

    async with an_office() as office:
        message = await office.post_raw('{"to": "ok@sandbox.test", "template": {"type": "x"}}')

        await office.work(pool(office, render=render))

        assert await office.dead_for(message) is DeadReason.VALIDATION_FAILED


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (Deferred(a_failure()), DeadReason.PERMANENT_ERROR),
        (Rejected(a_failure()), DeadReason.PERMANENT_ERROR),
        (Unknown(a_failure()), DeadReason.IN_DOUBT),
    ],
)
async def test_error_in_classifying_an_outcome_is_a_verdict_on_its_message(
    outcome: Outcome, reason: DeadReason
) -> None:
    """The attempt is not left open, or it would be made again."""
    calls = []

    async def provider(parcel: Parcel, _handover: Handover) -> Outcome:
        calls.append(parcel.attempt)
        return outcome

    async with an_office() as office:
        message = await office.post()

        with logged() as lines:
            await office.work(pool(office, deliver=provider), chance=BrokenChance())

        assert calls == [1]
        assert await office.dead_for(message) is reason
        assert [line["where"] for line in lines if line["event"] == "unexpected"] == ["judge"]


async def test_error_in_custom_rules_keeps_the_provider_verdict() -> None:
    def overrule(_: Outcome) -> NoReturn:
        raise ZeroDivisionError

    async with an_office() as office:
        sent = await office.post()
        refused = await office.post("reject@sandbox.test")

        await office.work(pool(office, overrule=overrule))

        assert await office.state(sent) is State.SENT
        assert await office.deliveries(sent) == 1
        assert await office.dead_for(refused) is DeadReason.PERMANENT_ERROR
