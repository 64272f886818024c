"""The library: opening, sending, and running a worker."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from carteiro.app import email_kind, retry_policy
from carteiro.config import load
from carteiro.email import make_email
from carteiro.errors import (
    ConfigError,
    InvalidMessage,
    NotAccepted,
    StoreUnavailable,
    TenantMissing,
)
from carteiro.model import (
    EMAIL,
    AcceptAnswer,
    Accepted,
    NewMessage,
    NotStored,
    State,
    Tenant,
    TenantId,
)
from carteiro.policy.retry import PRESETS
from carteiro.post import Carteiro
from carteiro.providers.noop import NoopProvider
from carteiro.providers.sandbox import SandboxProvider
from support.builders import ACME
from support.library import row_of, work
from support.working import TOO_LONG, Through

HELLO = {"to": "ok@sandbox.test", "subject": "Hello", "html": "<p>Hello</p>"}


# --- sending ----------------------------------------------------------------------------------


async def test_what_was_sent_is_stored() -> None:
    """An answer is given after the commit, with the id under which the message is found."""
    async with Carteiro.open("memory://") as post:
        answer = await post.send(tenant="acme", **HELLO)

        assert isinstance(answer, Accepted)
        row = await row_of(post, answer.id)
        assert (row.tenant, row.kind, row.state) == ("acme", EMAIL, State.ENQUEUED)
        assert (row.to, row.subject) == ("ok@sandbox.test", "Hello")


async def test_fields_go_by_their_python_and_their_json_names() -> None:
    """Whoever knows the API knows the library."""
    async with Carteiro.open("memory://") as post:
        python = await post.send(tenant="acme", external_id="order-1", ttl=5000, **HELLO)
        json = await post.send(tenant="acme", externalId="order-2", priority=2, **HELLO)

        assert (await row_of(post, python.id)).external_id == "order-1"
        row = await row_of(post, json.id)
        assert (row.external_id, row.priority) == ("order-2", 2)


async def test_send_raises_on_bad_input() -> None:
    """Every field that is wrong is named; nothing is stored, and no tenant is created."""
    async with Carteiro.open("memory://") as post:
        with pytest.raises(InvalidMessage) as refused:
            await post.send(tenant="acme", to="nobody", subject="", html="<p>x</p>")

        assert {each.field for each in refused.value.fields} == {"to", "subject"}
        assert await post.backend.reading.states() == {}
        assert await post.backend.tenants.find([ACME]) == [None]


@pytest.mark.parametrize(("tenant", "missing"), [("", False), (None, True), (7, False)])
async def test_a_tenant_must_be_a_name(tenant: Any, missing: bool) -> None:
    """Nothing can be sent by nobody."""
    async with Carteiro.open("memory://") as post:
        with pytest.raises(InvalidMessage) as refused:
            await post.send(tenant=tenant, **HELLO)

        assert [(each.field, each.missing) for each in refused.value.fields] == [
            ("tenant", missing)
        ]


async def test_send_many_answers_per_item() -> None:
    """In order; a bad item holds no good one up."""
    items: list[dict[str, Any]] = [
        {"tenant": "acme", **HELLO},
        {"tenant": "acme", **HELLO, "to": "nobody"},
        {**HELLO},
        {"tenant": "brasa", **HELLO},
        {"tenant": "brasa", **HELLO, "headers": object()},
    ]
    async with Carteiro.open("memory://") as post:
        answers = await post.send_many(items)

        kinds = [type(answer) for answer in answers]
        assert kinds == [Accepted, NotAccepted, NotAccepted, Accepted, NotAccepted]
        fields = [
            [each.field for each in answer.fields]
            for answer in answers
            if isinstance(answer, NotAccepted)
        ]
        assert fields == [["to"], ["tenant"], ["body"]]
        assert await post.backend.reading.states() == {State.ENQUEUED: 2}


async def test_nothing_at_all_may_be_sent() -> None:
    """No items, no answers."""
    async with Carteiro.open("memory://") as post:
        assert await post.send_many([]) == []


async def test_more_than_one_list_is_accepted_in_order() -> None:
    """A thousand and one items are stored in lists that a store can bear."""
    async with Carteiro.open("memory://") as post:
        answers = await post.send_many(
            [{"tenant": "acme", **HELLO, "externalId": f"n-{n}"} for n in range(1001)]
        )

        assert all(isinstance(answer, Accepted) for answer in answers)
        last = answers[-1]
        assert isinstance(last, Accepted)
        assert (await row_of(post, last.id)).external_id == "n-1000"


async def test_an_unknown_tenant_is_created_and_a_known_one_stays_as_it_is() -> None:
    """The library is trusted: it speaks for all tenants of the process."""
    known = Tenant(TenantId("brasa"), "Brasa Ltda", weight=2.0)
    async with Carteiro.open("memory://") as post:
        await post.backend.tenants.define([known])

        await post.send_many([{"tenant": name, **HELLO} for name in ("acme", "brasa", "acme")])

        [acme, brasa] = await post.backend.tenants.find([ACME, known.id])
        assert acme == Tenant(ACME)
        assert brasa == known


# --- for the ways in --------------------------------------------------------------------------


async def test_what_is_accepted_one_by_one_is_committed_together() -> None:
    """Callers at the same time share a commit; each has its answer."""
    email = make_email(HELLO)
    async with Carteiro.open("memory://") as post:
        await post.backend.tenants.ensure([ACME])

        answers = await asyncio.gather(
            *[post.accept_email(email, tenant=ACME, request_id=f"request-{n}") for n in range(20)]
        )

        assert len({answer.id for answer in answers}) == 20
        assert (await row_of(post, answers[7].id)).request_id == "request-7"


async def test_accept_email_creates_no_tenant() -> None:
    """A way in for others must not: whoever is unknown there is refused."""
    async with Carteiro.open("memory://") as post:
        with pytest.raises(TenantMissing, match="acme"):
            await post.accept_email(make_email(HELLO), tenant=ACME, request_id="request-1")

        assert await post.backend.reading.states() == {}


# --- opening ----------------------------------------------------------------------------------


def test_the_defaults_are_those_of_the_default_file() -> None:
    """Without a word about it: the production preset, and what the seeds of the settings say."""
    settings = load(environ={})

    assert retry_policy(settings) == PRESETS["gateway"]
    assert settings.delivery.default_ttl == timedelta(days=1)


async def test_overrides_are_settings_by_their_names() -> None:
    """Plain ones and those of a section; what is not given stays as it was."""
    async with Carteiro.open(
        "memory://", provider="noop", delivery={"lease_ms": 500}, environment="development"
    ) as post:
        assert post.settings.provider == "noop"
        assert post.settings.delivery.lease == timedelta(milliseconds=500)
        assert post.settings.delivery.call_limit == timedelta(seconds=30)
        assert post.settings.origin("delivery.lease_ms") == "flag"
        assert retry_policy(post.settings).max_attempts == PRESETS["development"].max_attempts


async def test_settings_may_be_given_as_they_are() -> None:
    """Whoever has loaded them need not have them loaded again."""
    settings = load(environ={}, overrides={"store": "memory://", "provider": "noop"})

    async with Carteiro.open(settings=settings) as post:
        assert post.settings is settings


async def test_a_file_is_opened_where_it_was_said(tmp_path: Path) -> None:
    """What was accepted is there for the next opener; a blank in the path may be escaped."""
    path = tmp_path / "my post.db"
    async with Carteiro.open(f"sqlite:///{path}") as post:
        answer = await post.send(tenant="acme", **HELLO)

    async with Carteiro.open(f"sqlite:///{str(path).replace(' ', '%20')}") as post:
        assert (await row_of(post, answer.id)).state is State.ENQUEUED


@pytest.mark.parametrize("store", ["redis://localhost", "sqlite:///", "nonsense"])
async def test_an_unknown_store_is_refused_with_its_origin(store: str) -> None:
    """Which setting, what it was, where it came from, and what is allowed."""
    with pytest.raises(ConfigError) as refused:
        async with Carteiro.open(store):
            pass

    assert f"store = {store!r} (from flag) is not known: use sqlite:///FILE" in str(refused.value)


async def test_an_unknown_provider_is_refused_with_its_origin() -> None:
    """The origin is where it was written: here an environment variable."""
    settings = load(environ={"CARTEIRO_STORE": "memory://", "CARTEIRO_PROVIDER": "pigeon"})
    with pytest.raises(ConfigError) as refused:
        async with Carteiro.open(settings=settings):
            pass

    text = str(refused.value)
    assert "provider = 'pigeon' (from environment variable CARTEIRO_PROVIDER)" in text
    assert "use sandbox or noop" in text


async def test_an_unknown_override_is_refused() -> None:
    """A name that no setting has is a mistake, and the next best one is named."""
    with pytest.raises(ConfigError, match=r"delivery\.leese_ms.*did you mean delivery\.lease_ms"):
        async with Carteiro.open("memory://", delivery={"leese_ms": 1}):
            pass


async def test_opening_tells_the_store_of_tiers_and_limits() -> None:
    """What the settings say of sharing is in force before the first claim."""
    settings = load(
        environ={},
        overrides={
            "store": "memory://",
            "provider": "noop",
            "tiers.gold": 4.0,
            "send_limit.count": 1,
            "send_limit.per_ms": 3_600_000,
        },
    )
    async with Carteiro.open(settings=settings) as post:
        await post.send_many([{"tenant": "acme", **HELLO}] * 3)
        working = asyncio.create_task(post.run_worker())
        async with asyncio.timeout(TOO_LONG):
            while State.SENT not in await post.backend.reading.states():
                await asyncio.sleep(0.001)
        post.stop()
        await working

        assert await post.backend.reading.states() == {State.SENT: 1, State.ENQUEUED: 2}


@pytest.mark.parametrize(
    ("provider", "made"), [("sandbox", SandboxProvider), ("noop", NoopProvider)]
)
async def test_the_provider_is_the_one_that_was_named(provider: str, made: type[Any]) -> None:
    """E-mail goes through it, under the call limit and the policy of the settings."""
    async with Carteiro.open(
        "memory://", provider=provider, delivery={"call_limit_ms": 70, "max_in_doubt_resends": 3}
    ) as post:
        kind, _ = email_kind(post.settings, post.backend)

        assert (kind.name, kind.provider, kind.declares) == (EMAIL, made.name, True)
        assert kind.call_limit == timedelta(milliseconds=70)
        assert retry_policy(post.settings).max_in_doubt_resends == 3


# --- working ----------------------------------------------------------------------------------


async def test_what_was_sent_is_delivered_by_a_worker() -> None:
    """From `send` to the sandbox's inbox."""
    async with Carteiro.open("memory://") as post:
        answer = await post.send(tenant="acme", **HELLO)

        await work(post)

        assert (await row_of(post, answer.id)).state is State.SENT
        [mail] = await post.backend.inbox.list(message=answer.id)
        assert mail.to == "ok@sandbox.test"


async def test_upkeep_runs_beside_the_worker_and_ends_with_it() -> None:
    """A message that nobody of this process can run expires all the same."""
    async with Carteiro.open("memory://", provider="noop") as post:
        other = Carteiro(post.backend, post.settings, threads=post._threads)
        stranger = other.task("stranger", ttl=timedelta(milliseconds=1))(lambda: None)
        await stranger.send(tenant="acme")
        await asyncio.sleep(0.002)
        before = asyncio.all_tasks()

        await work(post)

        assert await post.backend.reading.states() == {State.EXPIRED: 1}
        assert asyncio.all_tasks() == before


async def test_stop_now_ends_a_worker_at_once() -> None:
    """What it had claimed and not declared is there for the next one."""
    began = asyncio.Event()
    async with Carteiro.open("memory://", provider="noop") as post:

        @post.task("endless")
        async def endless() -> None:
            began.set()
            await asyncio.Event().wait()

        await endless.send(tenant="acme")
        working = asyncio.create_task(post.run_worker())
        await asyncio.wait_for(began.wait(), TOO_LONG)

        post.stop_now()
        await asyncio.wait_for(working, 1.0)

        assert await post.backend.reading.states() == {State.ENQUEUED: 1}


async def test_a_store_that_is_away_is_told_to_the_sender() -> None:
    """Nothing was promised, so nothing is lost: whoever sends may try again."""

    class Closed(Through):
        async def accept(self, new: Any) -> Any:
            raise StoreUnavailable(f"no room for {len(new)}")

    async with Carteiro.open("memory://") as post:
        closed = _with_store(post, Closed(post.backend.store))

        with pytest.raises(StoreUnavailable):
            await closed.send(tenant="acme", **HELLO)
        with pytest.raises(StoreUnavailable):
            await closed.accept_email(make_email(HELLO), tenant=ACME, request_id="request-1")


def _with_store(post: Carteiro, store: Any) -> Carteiro:
    return Carteiro(replace(post.backend, store=store), post.settings, threads=post._threads)


class _FullAfter(Through):
    """A store that takes so many lists and then fails."""

    lists = 1

    async def accept(self, new: Sequence[NewMessage]) -> list[AcceptAnswer]:
        """Take it while there is room."""
        if not self.lists:
            raise StoreUnavailable("the disk is full")
        self.lists -= 1
        return await super().accept(new)


async def test_what_is_stored_of_a_long_list_is_told_when_the_rest_is_not() -> None:
    """Whoever sends the whole list again after an error would send the stored part twice."""
    async with Carteiro.open("memory://") as post:
        full = _FullAfter(post.backend.store)
        post.backend = replace(post.backend, store=full)

        answers = await post.send_many([{"tenant": "acme", **HELLO}] * 1001)

        assert all(isinstance(answer, Accepted) for answer in answers[:1000])
        assert isinstance(answers[1000], NotStored)
        with pytest.raises(StoreUnavailable):
            await post.send_many([{"tenant": "acme", **HELLO}])


@pytest.mark.parametrize("tenant", [None, "", 7, "a\nb", "nul\0", "x" * 256, "\ud800"])
async def test_a_tenant_must_have_a_name(tenant: object) -> None:
    """What cannot be printed or stored is no name."""
    async with Carteiro.open("memory://") as post:
        [answer] = await post.send_many([{"tenant": tenant, **HELLO}])

        assert isinstance(answer, NotAccepted)
        assert [fault.field for fault in answer.fields] == ["tenant"]


async def test_a_worker_can_be_stopped_before_it_has_begun() -> None:
    """A stop that comes while the worker is being started is not forgotten."""
    async with Carteiro.open("memory://") as post:
        working = asyncio.create_task(post.run_worker())
        post.stop()

        async with asyncio.timeout(TOO_LONG):
            await working


async def test_what_could_not_be_read_back_is_not_accepted() -> None:
    """A moment beyond all calendars is a mistake."""
    async with Carteiro.open("memory://") as post:
        with pytest.raises(InvalidMessage, match="scheduledAt"):
            await post.send(tenant="acme", scheduled_at="9999-12-31T23:59:59Z", **HELLO)
