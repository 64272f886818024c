"""The library's methods about one message: get, timeline, wait, explain, cancel, redrive."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from carteiro import CancelAnswer, Carteiro, RedriveAnswer, State, Why
from support.table_queue import a_shared_database
from support.working import TOO_LONG

HELLO = {"subject": "Hello", "text": "Hello"}
NO_ID = "not-an-id"
UNKNOWN = "01a1e1af-1fda-7488-8b8b-a5539457513a"
NO_TIME = timedelta(0)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.servers)])
async def post(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Carteiro]:
    """An app on each store."""
    if request.param == "sqlite":
        async with Carteiro.open(f"sqlite:///{tmp_path}/post.db") as office:
            yield office
        return
    with a_shared_database() as url:
        async with Carteiro.open(url) as office:
            yield office


async def _sent(post: Carteiro, to: str = "ok@sandbox.test", **fields: object) -> str:
    return (await post.send(tenant="acme", to=to, **HELLO, **fields)).id


async def _waiting(post: Carteiro) -> str:
    return await _sent(post, scheduled_at=datetime.now(UTC) + timedelta(hours=1))


async def _dead(post: Carteiro) -> str:
    message = await _sent(post, "bounce-550@sandbox.test")
    await post.work_off()
    return message


async def test_message_is_found_with_its_timeline(post: Carteiro) -> None:
    """By its id alone, or by its id and its tenant."""
    message = await _sent(post)

    found = await post.get(message)
    events = await post.timeline(message, tenant="acme")

    assert found is not None
    assert (found.id, found.tenant, found.state) == (message, "acme", State.ENQUEUED)
    assert found == await post.get(message, tenant="acme")
    assert [event.type for event in events] == ["ENQUEUED"]


async def test_wait_ends_with_the_message(post: Carteiro) -> None:
    """Sent or not; the answer has the state and the reason."""
    sent, dead = await _sent(post), await _sent(post, "bounce-550@sandbox.test")
    working = asyncio.create_task(post.run_worker())
    async with asyncio.timeout(TOO_LONG):
        ended = [await post.wait(each, tenant="acme") for each in (sent, dead)]
        post.stop()
        await working

    states = [(each.state, each.failure is None) for each in ended if each is not None]
    assert states == [(State.SENT, True), (State.FAILED, False)]


@pytest.mark.parametrize("timeout", [timedelta(milliseconds=1), 0.001, 0])
async def test_wait_ends_at_its_timeout(post: Carteiro, timeout: timedelta | float) -> None:
    """Without a worker nothing ends: the message comes back unchanged."""
    message = await _sent(post)

    found = await post.wait(message, timeout=timeout)

    assert found is not None
    assert found.state is State.ENQUEUED


async def test_waiting_message_is_explained_and_cancelled(post: Carteiro) -> None:
    """A cancelled one is finished, and cannot be cancelled again."""
    message = await _waiting(post)

    before = await post.explain(message, tenant="acme")
    answers = [await post.cancel(message, tenant="acme"), await post.cancel(message)]
    after = await post.explain(message)

    assert before is not None
    assert after is not None
    assert (before.why, after.why) == (Why.SCHEDULED, Why.FINISHED)
    assert answers == [CancelAnswer.CANCELLED, CancelAnswer.FINISHED]


async def test_dead_message_is_redriven_once(post: Carteiro) -> None:
    """The timeline has the user; a message in flight is not sent twice."""
    message = await _dead(post)

    answers = [await post.redrive(message, tenant="acme", by="ana"), await post.redrive(message)]
    found = await post.get(message)
    events = await post.timeline(message)

    assert answers == [RedriveAnswer.REDRIVEN, RedriveAnswer.ALREADY]
    assert found is not None
    assert (found.state, found.round) == (State.ENQUEUED, 2)
    assert events[-1].metadata["redrivenBy"] == "ana"


async def test_message_that_never_failed_is_not_redriven(post: Carteiro) -> None:
    """There is no dead letter, and the message is not changed."""
    message = await _waiting(post)

    assert await post.redrive(message) is RedriveAnswer.NOT_FOUND
    assert (await post.get(message)) == await post.wait(message, timeout=NO_TIME)


@pytest.mark.parametrize("method", ["get", "timeline", "wait", "explain", "cancel", "redrive"])
async def test_error_of_a_wrong_id_says_what_to_pass(post: Carteiro, method: str) -> None:
    """None, or the whole answer of `send`, is not an id."""
    accepted = await post.send(tenant="acme", to="ok@sandbox.test", **HELLO)

    for wrong in (None, accepted):
        with pytest.raises(TypeError, match=r"pass the id of a message.*accepted\.id"):
            await getattr(post, method)(wrong)


@pytest.mark.parametrize("tenant", ["brasa", "acme"])
async def test_message_of_another_tenant_is_not_found(post: Carteiro, tenant: str) -> None:
    """As an unknown or invalid id: nothing leaks, nothing changes."""
    waiting, dead = await _waiting(post), await _dead(post)
    await post.send(tenant="brasa", to="ok@sandbox.test", **HELLO)
    foreign = [waiting, dead] if tenant == "brasa" else []

    for message in (*foreign, UNKNOWN, NO_ID, ""):
        assert await post.get(message, tenant=tenant) is None
        assert await post.timeline(message, tenant=tenant) == []
        assert await post.wait(message, tenant=tenant) is None
        assert await post.explain(message, tenant=tenant) is None
        assert await post.cancel(message, tenant=tenant) is CancelAnswer.NOT_FOUND
        assert await post.redrive(message, tenant=tenant) is RedriveAnswer.NOT_FOUND

    found = [await post.get(waiting, tenant="acme"), await post.get(dead, tenant="acme")]
    assert [each and each.state for each in found] == [State.ENQUEUED, State.FAILED]
