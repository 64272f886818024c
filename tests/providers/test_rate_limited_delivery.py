"""Mail through providers with a rate limit: SES on a real socket announces its rate, and throttles."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from carteiro import Carteiro
from carteiro.config import load
from carteiro.email.message import make_email
from carteiro.jobs.kind import Kind
from carteiro.model import Deferred, EventType, MessageId, Outcome, State, Taken
from carteiro.path.deliver import TimeLimits, deliver
from carteiro.ports import Backend, Handover
from carteiro.providers import rate_limiter
from carteiro.providers.email_kind import email_kind
from support.clock import MILLISECOND, StoreClock
from support.quick_store import quick_backend
from support.ses_twin import ACCOUNT, KEY_ID, REGION, SECRET, Answer, Mail, SesTwin, a_ses_twin
from support.working import LONG, a_job, a_parcel

REGIONAL = f"ses:{REGION}"
TOO_FAST = Answer("TooManyRequestsException", 429, "Too many requests.")
MAIL = make_email({"to": "ana@example.com", "subject": "s", "text": "t"})


@pytest.fixture(autouse=True)
def _with_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys as AWS' tools find them; a carteiro.toml of the current folder must not decide a test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY_ID)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)


def account(per_second: float) -> Mapping[str, Any]:
    """The quota answer of an account with this rate."""
    quota = {"Max24HourSend": 50000.0, "MaxSendRate": per_second, "SentLast24Hours": 0.0}
    return dict(ACCOUNT) | {"SendQuota": quota}


def settings_for(twin: SesTwin, **changes: Any) -> dict[str, Any]:
    """The section of the account at the twin."""
    return {"endpoint_url": twin.url, "default_from": "loja@example.com"} | changes


@asynccontextmanager
async def a_kind(twin: SesTwin, backend: Backend, **changes: Any) -> AsyncIterator[Kind]:
    """Mail through the twin, as settings make it; ``changes`` are keys of its section."""
    section = settings_for(twin, **changes)
    overrides = {"provider": REGIONAL} | {f"ses.{name}": each for name, each in section.items()}
    kind, _ = email_kind(load(environ={}, overrides=overrides), backend)
    try:
        yield kind
    finally:
        assert kind.close is not None
        await kind.close()


async def called(kind: Kind, clock: StoreClock) -> Outcome:
    """One call, as soon as allowed; the store's time passes meanwhile."""
    assert kind.chain is not None
    async with asyncio.timeout(10):
        while isinstance(chosen := kind.chain.choose(a_job()), timedelta):
            await asyncio.sleep(0.001)
            clock.advance(MILLISECOND)
    return await deliver(chosen, a_parcel(MAIL), Handover(LONG), TimeLimits())


async def test_rate_starts_from_the_quota_falls_on_throttling_and_climbs_back() -> None:
    """The value of GetAccount, half of it after a 429, and all of it some seconds later."""
    clock = StoreClock()
    async with (
        quick_backend(clock=clock) as backend,
        a_ses_twin(TOO_FAST, account=account(50.0)) as twin,
        a_kind(twin, backend) as kind,
    ):
        throttled = await called(kind, clock)
        taken = await called(kind, clock)
        [cut] = await backend.rates.show()
        clock.advance(timedelta(seconds=4))
        [climbing] = await backend.rates.show()
        clock.advance(timedelta(seconds=6))
        [well] = await backend.rates.show()

    assert isinstance(throttled, Deferred)
    assert isinstance(taken, Taken)
    assert (cut.provider, cut.ceiling, cut.rate) == (REGIONAL, 50.0, 25.0)
    assert (climbing.rate, well.rate) == (35.0, 50.0)


async def test_configured_rate_is_the_ceiling() -> None:
    """With any quota of the account."""
    clock = StoreClock()
    async with (
        quick_backend(clock=clock) as backend,
        a_ses_twin(account=account(50.0)) as twin,
        a_kind(twin, backend, rate_per_second=7) as kind,
    ):
        await called(kind, clock)
        [shown] = await backend.rates.show()

    assert (shown.rate, shown.ceiling) == (7.0, 7.0)


async def test_key_without_permission_for_the_quota_sends_without_one() -> None:
    """Until SES throttles."""
    denied = Answer("AccessDeniedException", 403, "Not authorized.")
    clock = StoreClock()
    async with (
        quick_backend(clock=clock) as backend,
        a_ses_twin(account=denied) as twin,
        a_kind(twin, backend) as kind,
    ):
        taken = await called(kind, clock)
        [shown] = await backend.rates.show()

    assert isinstance(taken, Taken)
    assert (shown.rate, shown.ceiling) == (None, None)


async def test_first_provider_of_a_chain_is_used_from_the_first_mail_on() -> None:
    """While its quota is fetched, no other takes its place: not in a short process, either."""
    clock = StoreClock()
    async with (
        quick_backend(clock=clock) as backend,
        a_ses_twin(account=account(50.0)) as twin,
    ):
        section = settings_for(twin)
        overrides = {"provider": f"{REGIONAL}, smtp"}
        overrides |= {f"ses.{name}": each for name, each in section.items()}
        kind, _ = email_kind(load(environ={}, overrides=overrides), backend)
        assert kind.chain is not None
        async with asyncio.timeout(10):
            while isinstance(chosen := kind.chain.choose(a_job()), timedelta):
                await asyncio.sleep(0.001)
        assert kind.close is not None
        await kind.close()

    assert chosen.provider == REGIONAL


async def test_delayed_mail_is_not_charged() -> None:
    """More mail than the rate allows at once: each is sent with its first attempt, declared once."""
    count = 30
    async with a_ses_twin(account=account(20.0)) as twin:
        section = settings_for(twin, concurrency=3)
        async with Carteiro.open("memory://", provider=REGIONAL, ses=section) as post:
            fields = {"tenant": "acme", "subject": "s", "text": "t"}
            sent = [await post.send(to=f"a{n}@example.com", **fields) for n in range(count)]
            worker = post.run_worker()

            def take_and_stop(mail: Mail) -> None:
                twin.mails.append(mail)
                if len(twin.mails) == count:
                    post.stop()

            twin.on_mail = take_and_stop
            await worker
            rows = [await post.backend.reading.message(each.id) for each in sent]
            stories = [await _story(post, each.id) for each in sent]
            [standing] = post.tally.providers()
            page = (await post.metrics.exposition()).decode()

    assert {(row.state, row.attempts, row.charged) for row in rows if row} == {(State.SENT, 1, 0)}
    assert len(twin.mails) == count
    assert {story.count(EventType.SENT_ATTEMPT) for story in stories} == {1}
    assert not any(EventType.RETRY_SCHEDULED in story for story in stories)
    assert standing.held_back > 0
    assert f'carteiro_provider_rate{{provider="{REGIONAL}"}} 20.0' in page
    assert f'carteiro_provider_open{{provider="{REGIONAL}"}} 0.0' in page


async def test_finished_call_makes_room_for_the_next_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The worker does not wait for its next check, which here would be never."""
    monkeypatch.setattr(rate_limiter, "_FULL_S", 3600.0)
    count = 5
    async with a_ses_twin(account=account(1000.0)) as twin, asyncio.timeout(30):
        section = settings_for(twin, concurrency=1)
        async with Carteiro.open("memory://", provider=REGIONAL, ses=section) as post:
            for n in range(count):
                await post.send(tenant="acme", to=f"a{n}@example.com", subject="s", text="t")
            worker = post.run_worker()

            def take_and_stop(mail: Mail) -> None:
                twin.mails.append(mail)
                if len(twin.mails) == count:
                    post.stop()

            twin.on_mail = take_and_stop
            await worker
            [standing] = post.tally.providers()

    assert len(twin.mails) == count
    assert standing.held_back > 0


async def _story(post: Carteiro, message: MessageId) -> list[EventType]:
    return [event.type for event in await post.backend.reading.events(message)]
