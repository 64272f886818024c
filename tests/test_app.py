"""The library: opening, sending, and running a worker."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from carteiro.app import Carteiro
from carteiro.config import load
from carteiro.email.message import make_email, restore_email
from carteiro.email.submission import Submission
from carteiro.errors import (
    ConfigError,
    FieldError,
    InvalidMessage,
    KeyReused,
    NotAccepted,
    StoreUnavailable,
    TenantMissing,
)
from carteiro.model import (
    EMAIL,
    AcceptAnswer,
    Accepted,
    ApiLimits,
    KeyConflict,
    LeasedJob,
    MessageFilter,
    NewMessage,
    NewTemplate,
    NotStored,
    OverLimit,
    Replayed,
    State,
    Tenant,
    TenantId,
    TenantUnknown,
)
from carteiro.policy.retry import PRESETS
from carteiro.providers.email_kind import email_kind, email_policy, retry_policy
from carteiro.providers.noop.provider import NoopProvider
from carteiro.providers.sandbox.provider import SandboxProvider
from support.builders import ACME
from support.library import row_of, work
from support.steps import claimed
from support.working import TOO_LONG, Through

HELLO = {"to": "ok@sandbox.test", "subject": "Hello", "html": "<p>Hello</p>"}
WELCOME = NewTemplate(ACME, "welcome", subject="Oi", text="Oi, {{ name }}")
OI = {"type": "welcome", "variables": {"name": "Ana"}}


# --- sending ----------------------------------------------------------------------------------


async def test_sent_message_is_stored() -> None:
    """The answer comes after the commit, with the id of the message."""
    async with Carteiro.open("memory://") as post:
        answer = await post.send(tenant="acme", **HELLO)

        assert isinstance(answer, Accepted)
        row = await row_of(post, answer.id)
        assert (row.tenant, row.kind, row.state) == ("acme", EMAIL, State.ENQUEUED)
        assert (row.to, row.subject) == ("ok@sandbox.test", "Hello")


async def test_fields_have_their_python_and_their_json_names() -> None:
    """As in the API."""
    async with Carteiro.open("memory://") as post:
        python = await post.send(tenant="acme", external_id="order-1", ttl=5000, **HELLO)
        json = await post.send(tenant="acme", externalId="order-2", priority=2, **HELLO)

        assert (await row_of(post, python.id)).external_id == "order-1"
        row = await row_of(post, json.id)
        assert (row.external_id, row.priority) == ("order-2", 2)


async def test_send_raises_on_invalid_input() -> None:
    """Every wrong field is named; nothing is stored, and no tenant is created."""
    async with Carteiro.open("memory://") as post:
        with pytest.raises(InvalidMessage) as refused:
            await post.send(tenant="acme", to="nobody", subject="", html="<p>x</p>")

        assert {each.field for each in refused.value.fields} == {"to", "subject"}
        assert await post.backend.reading.states() == {}
        assert await post.backend.tenants.find([ACME]) == [None]


@pytest.mark.parametrize(("tenant", "missing"), [("", False), (None, True), (7, False)])
async def test_tenant_is_required(tenant: Any, missing: bool) -> None:
    async with Carteiro.open("memory://") as post:
        with pytest.raises(InvalidMessage) as refused:
            await post.send(tenant=tenant, **HELLO)

        assert [(each.field, each.missing) for each in refused.value.fields] == [
            ("tenant", missing)
        ]


async def test_send_many_answers_per_item() -> None:
    """In order; an invalid item does not affect a valid one."""
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


async def test_list_is_one_request() -> None:
    """As a batch over HTTP is; the next list is another one."""
    async with Carteiro.open("memory://") as post:
        for _ in range(2):
            await post.send_many([{"tenant": "acme", **HELLO}] * 2)
        page = await post.backend.reading.messages(MessageFilter(), limit=9)

        requests = [each.request_id for each in page.rows]
        assert requests[0] == requests[1] != requests[2] == requests[3]


@pytest.mark.parametrize("item", [7, None, "to: ana@example.com", {"tenant": ["acme"], **HELLO}])
async def test_unreadable_item_is_refused_in_its_place(item: Any) -> None:
    """Of any type; the others are accepted."""
    async with Carteiro.open("memory://") as post:
        answers = await post.send_many([item, {"tenant": "acme", **HELLO}])

        assert [type(answer) for answer in answers] == [NotAccepted, Accepted]


async def test_empty_list_may_be_sent() -> None:
    """No items, no answers."""
    async with Carteiro.open("memory://") as post:
        assert await post.send_many([]) == []


async def test_long_list_is_accepted_in_order() -> None:
    """A thousand and one items are stored in batches that a store can take."""
    async with Carteiro.open("memory://") as post:
        answers = await post.send_many(
            [{"tenant": "acme", **HELLO, "externalId": f"n-{n}"} for n in range(1001)]
        )

        assert all(isinstance(answer, Accepted) for answer in answers)
        last = answers[-1]
        assert isinstance(last, Accepted)
        assert (await row_of(post, last.id)).external_id == "n-1000"


async def test_unknown_tenant_is_created_and_a_known_one_is_not_changed() -> None:
    """The library is trusted: it acts for all tenants of the process."""
    known = Tenant(TenantId("brasa"), "Brasa Ltda", weight=2.0)
    async with Carteiro.open("memory://") as post:
        await post.backend.tenants.define([known])

        await post.send_many([{"tenant": name, **HELLO} for name in ("acme", "brasa", "acme")])

        [acme, brasa] = await post.backend.tenants.find([ACME, known.id])
        assert acme == Tenant(ACME)
        assert brasa == known


# --- idempotency and settings of the tenant ---------------------------------------------------


async def test_repeated_key_sends_once() -> None:
    """The second answer is the first one's; without the key it is another message."""
    async with Carteiro.open("memory://") as post:
        first = await post.send(tenant="acme", idempotency_key="order-1", **HELLO)
        again = await post.send(tenant="acme", idempotency_key="order-1", **HELLO)
        other = await post.send(tenant="acme", **HELLO)

        assert isinstance(again, Replayed)
        assert (again.id, again.received_at) == (first.id, first.received_at)
        assert isinstance(other, Accepted)


@pytest.mark.parametrize(
    "email",
    [
        {"idempotency_key": "order-1", "template": OI},
        {"external_id": "order-1", "template": OI},
        {"idempotency_key": "order-1", "text": "Oi", "from": "post@acme.example", "subject": "Oi"},
    ],
)
async def test_accepted_email_is_replayed_even_if_it_would_be_refused_now(
    email: dict[str, Any],
) -> None:
    """The template is deleted and the domain revoked: the first answer stands all the same."""
    asked = {"tenant": "acme", "to": "ana@example.com"} | email
    async with Carteiro.open("memory://") as post:
        other = _with_store(post, post.backend.store)  # which has no tenant in its cache yet
        await post.backend.tenants.define([Tenant(ACME, external_id_is_key=True)])
        await post.backend.templates.define(WELCOME)
        first = await post.send(**asked)
        await post.backend.templates.delete(ACME, "welcome")
        await post.backend.tenants.define(
            [Tenant(ACME, external_id_is_key=True, from_domains=("brasa.example",))]
        )

        again = await other.send(**asked)
        with pytest.raises(InvalidMessage):
            await other.send(**asked | {"to": "rui@example.com"})

        assert isinstance(again, Replayed)
        assert (again.id, again.received_at) == (first.id, first.received_at)


async def test_key_of_another_email_is_a_conflict() -> None:
    """`send` raises, `send_many` answers in its place; either way nothing is stored."""
    other = HELLO | {"subject": "Other"}
    async with Carteiro.open("memory://") as post:
        first = await post.send(tenant="acme", idempotency_key="order-1", **HELLO)

        with pytest.raises(KeyReused, match=first.id):
            await post.send(tenant="acme", idempotency_key="order-1", **other)
        answers = await post.send_many(
            [
                {"tenant": "acme", "idempotency_key": "order-1", **other},
                {"tenant": "brasa", "idempotency_key": "order-1", **other},
            ]
        )

        assert answers[0] == KeyConflict(first.id)
        assert isinstance(answers[1], Accepted)


@pytest.mark.parametrize("key", ["", " ", "x" * 129, "ação", "line\nbreak", 7])
async def test_key_must_fit_into_a_header(key: Any) -> None:
    """As over HTTP."""
    async with Carteiro.open("memory://") as post:
        with pytest.raises(InvalidMessage) as refused:
            await post.send(tenant="acme", idempotency_key=key, **HELLO)

        assert [each.field for each in refused.value.fields] == ["idempotency_key"]


async def test_default_from_of_the_tenant_is_filled_in_and_others_are_refused() -> None:
    """Item by item, with the settings in the store."""
    tenant = Tenant(ACME, default_from="post@acme.example", from_domains=("acme.example",))
    async with Carteiro.open("memory://") as post:
        await post.backend.tenants.define([tenant])

        own, refused, free = await post.send_many(
            [
                {"tenant": "acme", **HELLO},
                {"tenant": "acme", "from": "post@brasa.example", **HELLO},
                {"tenant": "brasa", "from": "post@brasa.example", **HELLO},
            ]
        )

        assert isinstance(own, Accepted)
        content = (await row_of(post, own.id)).content
        assert content is not None
        assert restore_email(content).from_ == "post@acme.example"
        assert isinstance(refused, NotAccepted)
        assert [each.field for each in refused.fields] == ["from"]
        assert isinstance(free, Accepted)


async def test_external_id_is_a_key_where_the_tenant_says_so() -> None:
    """Another e-mail under the same one conflicts; a given key is used instead."""
    order = HELLO | {"externalId": "order-1"}
    async with Carteiro.open("memory://") as post:
        await post.backend.tenants.define([Tenant(ACME, external_id_is_key=True)])
        first = await post.send(tenant="acme", **order)

        again = await post.send(tenant="acme", **order)
        keyed = await post.send(tenant="acme", idempotency_key="order-1", **order)
        with pytest.raises(KeyReused):
            await post.send(tenant="acme", **order | {"subject": "Other"})

        assert isinstance(again, Replayed)
        assert again.id == first.id
        assert isinstance(keyed, Accepted)
        assert isinstance(await post.send(tenant="brasa", **order), Accepted)
        assert isinstance(await post.send(tenant="brasa", **order), Accepted)


async def test_disabled_tenant_sends_nothing() -> None:
    """E-mail and tasks alike; others of the list are accepted."""
    async with Carteiro.open("memory://") as post:
        await post.backend.tenants.define([Tenant(ACME, disabled=True)])
        task = post.task("tidy")(lambda: None)

        answers = await post.send_many([{"tenant": each, **HELLO} for each in ("acme", "brasa")])

        assert answers[0] == NotAccepted((FieldError("tenant", "is disabled"),))
        assert isinstance(answers[1], Accepted)
        with pytest.raises(InvalidMessage, match="disabled"):
            await task.send(tenant="acme")


async def test_erased_tenant_is_created_again() -> None:
    """The first call gets an error, the next one succeeds."""

    class Forgetful(Through):
        forgets = True

        async def accept(self, new: Sequence[NewMessage]) -> list[AcceptAnswer]:
            if not self.forgets:
                return await self.store.accept(new)
            return [TenantUnknown(each.tenant) for each in new]

    async with Carteiro.open("memory://") as post:
        store = Forgetful(post.backend.store)
        office = _with_store(post, store)

        [gone] = await office.send_many([{"tenant": "acme", **HELLO}])
        store.forgets = False

        assert isinstance(gone, NotAccepted)
        assert isinstance(await office.send(tenant="acme", **HELLO), Accepted)


# --- for the entry points ---------------------------------------------------------------------


async def test_http_messages_count_against_limits_and_library_messages_do_not() -> None:
    """Limits are given with each e-mail; the library gives none."""
    limits = ApiLimits(1, None, None)
    async with Carteiro.open("memory://") as post:
        await post.send_many([{"tenant": "acme", **HELLO}] * 3)
        answers = [
            await post.accepting.one(
                Submission(make_email(HELLO), Tenant(ACME), "r", limits=limits)
            )
            for _ in range(2)
        ]

        assert [type(answer) for answer in answers] == [Accepted, OverLimit]


async def test_email_is_accepted_with_its_key_type_and_tags() -> None:
    """Everything known of a request is stored with it."""
    email = make_email({"to": "ana@example.com", "template": OI, "tags": ["news"]})
    async with Carteiro.open("memory://") as post:
        await post.backend.tenants.ensure([ACME])
        await post.backend.templates.define(WELCOME)
        first, again = [
            await post.accepting.one(Submission(email, Tenant(ACME), each, "key"))
            for each in ("first", "again")
        ]

        assert isinstance(first, Accepted)
        assert again == Replayed(first.id, first.received_at, None, "first")
        row = await row_of(post, first.id)
        assert (row.tags, row.template_type) == (("news",), "welcome")


async def test_many_are_accepted_in_one_commit() -> None:
    """An answer for each, in order; a From that is not the tenant's is refused in its place."""
    tenant = Tenant(ACME, from_domains=("acme.example",))
    other = make_email(HELLO | {"subject": "Other"})
    strange = make_email(HELLO | {"from": "post@brasa.example"})
    async with Carteiro.open("memory://") as post:
        await post.backend.tenants.define([tenant])
        commits = _Counting(post.backend.store)

        answers = await _with_store(post, commits).accepting.many(
            [
                Submission(make_email(HELLO), tenant, "r-1", "key"),
                Submission(strange, tenant, "r-2"),
                Submission(make_email(HELLO), tenant, "r-3", "key"),
                Submission(other, tenant, "r-4", "key"),
                Submission(make_email(HELLO), tenant, "r-5", limits=ApiLimits(0, None, None)),
            ]
        )

        kinds = [Accepted, NotAccepted, Replayed, KeyConflict, OverLimit]
        assert [type(answer) for answer in answers] == kinds
        assert commits.lists == 1


async def test_from_of_another_tenant_is_refused_on_acceptance() -> None:
    """Nothing of it is stored."""
    tenant = Tenant(ACME, from_domains=("acme.example",))
    strange = make_email(HELLO | {"from": "post@brasa.example"})
    async with Carteiro.open("memory://") as post:
        await post.backend.tenants.define([tenant])

        with pytest.raises(InvalidMessage, match="from"):
            await post.accepting.one(Submission(strange, tenant, "r"))

        assert await post.backend.reading.states() == {}


async def test_tenant_that_was_disabled_just_now_is_refused() -> None:
    """Also by a process that still has the old state in its cache."""
    async with Carteiro.open("memory://") as post:
        await post.backend.tenants.define([Tenant(ACME, disabled=True)])

        with pytest.raises(TenantMissing, match="disabled"):
            await post.accepting.one(Submission(make_email(HELLO), Tenant(ACME), "r"))


async def test_concurrent_submissions_are_committed_together() -> None:
    """Callers at the same time share a commit; each has its answer."""
    email = make_email(HELLO)
    async with Carteiro.open("memory://") as post:
        await post.backend.tenants.ensure([ACME])

        answers = await asyncio.gather(
            *[post.accepting.one(Submission(email, Tenant(ACME), f"r-{n}")) for n in range(20)]
        )

        taken = [answer for answer in answers if isinstance(answer, Accepted)]
        assert len({answer.id for answer in taken}) == 20
        assert (await row_of(post, taken[7].id)).request_id == "r-7"


async def test_submission_creates_no_tenant() -> None:
    """At the entry points for others an unknown tenant is refused."""
    async with Carteiro.open("memory://") as post:
        with pytest.raises(TenantMissing, match="acme"):
            await post.accepting.one(Submission(make_email(HELLO), Tenant(ACME), "request-1"))

        assert await post.backend.reading.states() == {}


# --- opening ----------------------------------------------------------------------------------


def test_defaults_are_those_of_the_default_file() -> None:
    """The production preset, and the values of the settings."""
    settings = load(environ={})

    assert retry_policy(settings) == PRESETS["gateway"]
    assert settings.delivery.default_ttl == timedelta(days=1)


async def test_overrides_are_settings_by_their_names() -> None:
    """Plain ones and those of a section; the others stay."""
    async with Carteiro.open(
        "memory://", provider="noop", delivery={"lease_ms": 500}, environment="development"
    ) as post:
        assert post.settings.provider == "noop"
        assert post.settings.delivery.lease == timedelta(milliseconds=500)
        assert post.settings.delivery.call_limit == timedelta(seconds=30)
        assert post.settings.origin("delivery.lease_ms") == "argument delivery"
        assert retry_policy(post.settings).max_attempts == PRESETS["development"].max_attempts


async def test_loaded_settings_may_be_passed() -> None:
    """They are not loaded again."""
    settings = load(environ={}, overrides={"store": "memory://", "provider": "noop"})

    async with Carteiro.open(settings=settings) as post:
        assert post.settings is settings


async def test_file_is_opened_at_its_path(tmp_path: Path) -> None:
    """Messages are there for the next opener; a blank in the path may be escaped."""
    path = tmp_path / "my post.db"
    async with Carteiro.open(f"sqlite:///{path}") as post:
        answer = await post.send(tenant="acme", **HELLO)

    async with Carteiro.open(f"sqlite:///{str(path).replace(' ', '%20')}") as post:
        assert (await row_of(post, answer.id)).state is State.ENQUEUED


@pytest.mark.parametrize("store", ["redis://localhost", "sqlite:///", "nonsense"])
async def test_unknown_store_is_refused_with_its_origin(store: str) -> None:
    """The setting, its value, its origin, and what is allowed."""
    with pytest.raises(ConfigError) as refused:
        async with Carteiro.open(store):
            pass

    assert f"store = {store!r} (from argument store): should be sqlite:///FILE" in str(
        refused.value
    )


async def test_unknown_provider_is_refused_with_its_origin() -> None:
    """The setting, its value, its origin, and what is allowed."""
    with pytest.raises(ConfigError) as refused:
        async with Carteiro.open("memory://", provider="pigeon"):
            pass

    text = str(refused.value)
    assert text.startswith(
        "provider = 'pigeon' (from argument provider): should be sandbox, smtp, "
    )


async def test_unknown_override_is_refused() -> None:
    """The error suggests the nearest name."""
    with pytest.raises(ConfigError, match=r"delivery\.leese_ms.*did you mean delivery\.lease_ms"):
        async with Carteiro.open("memory://", delivery={"leese_ms": 1}):
            pass


async def test_opening_applies_tiers_and_limits_to_the_store() -> None:
    """They are in force before the first claim."""
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
    ("per_ms", "tolerance"),
    [(60_000, timedelta(milliseconds=250)), (1_000, timedelta(milliseconds=50))],
)
async def test_claims_count_longer_by_the_allowed_start_delay(
    per_ms: int, tolerance: timedelta
) -> None:
    """No period of the setting's length holds more starts, though each is a little after its claim."""
    limit = {"count": 1, "per_ms": per_ms}
    async with Carteiro.open("memory://", provider="noop", send_limit=limit) as post:
        _, second = await post.send_many([{"tenant": "acme", **HELLO}] * 2)
        await claimed(post.backend.store)
        assert isinstance(second, Accepted)
        place = await post.backend.reading.place(second.id)
        [standing] = await post.backend.tenants.standings(EMAIL)
        kind, _ = email_kind(post.settings, post.backend)

        assert place is not None
        assert standing.last_processed_at is not None
        assert place.limited_until == standing.last_processed_at + (
            timedelta(milliseconds=per_ms) + tolerance
        )
        assert kind.start_within == tolerance


async def test_attempt_without_a_send_limit_starts_at_any_time() -> None:
    """Nothing is released for being late."""
    async with Carteiro.open("memory://", provider="noop") as post:
        kind, _ = email_kind(post.settings, post.backend)

        assert kind.start_within is None


async def test_worker_delays_suspects_at_its_start_and_a_one_shot_run_does_not() -> None:
    """The previous worker may have died of one; a one-shot run would never run it."""
    async with Carteiro.open("memory://", provider="noop") as post:
        suspect = (await post.send(tenant="acme", **HELLO)).id
        for _ in range(2):
            await claimed(post.backend.store, lease=timedelta(milliseconds=1))
            await asyncio.sleep(0.002)
        working = asyncio.create_task(post.run_worker())
        async with asyncio.timeout(TOO_LONG):
            while (place := await post.backend.reading.place(suspect)) is not None:
                if place.parked_until is not None and not place.is_claimed:
                    break
                await asyncio.sleep(0.001)
        post.stop()
        await working
        assert place is not None
        assert place.claims == 2

        other = (await post.send(tenant="brasa", **HELLO)).id
        for _ in range(2):
            await claimed(post.backend.store, lease=timedelta(milliseconds=1))
            await asyncio.sleep(0.002)

        assert await post.work_off() == {State.SENT: 1}
        assert (await row_of(post, other)).state is State.SENT


@pytest.mark.parametrize(
    ("provider", "made"), [("sandbox", SandboxProvider), ("noop", NoopProvider)]
)
async def test_named_provider_is_used(provider: str, made: type[Any]) -> None:
    """E-mail goes through it, with the timeout and the policy of the settings."""
    async with Carteiro.open(
        "memory://", provider=provider, delivery={"call_limit_ms": 70, "max_in_doubt_resends": 3}
    ) as post:
        kind, _ = email_kind(post.settings, post.backend)

        assert (kind.name, kind.provider, kind.declares) == (EMAIL, made.name, True)
        assert kind.call_limit == timedelta(milliseconds=70)
        assert retry_policy(post.settings).max_in_doubt_resends == 3


async def test_job_is_retried_by_the_preset_of_its_tenant() -> None:
    """With the settings for all presets; else by the configured one."""
    settings = load(environ={}, overrides={"retry.preset": "tickets", "retry.charge": "message"})
    policy = email_policy(settings)
    [job] = await _jobs_of(Tenant(ACME, retry_preset="classic"))

    assert policy(job) == replace(PRESETS["classic"], charge="message")
    for unnamed in (None, "unheard of"):
        assert policy(replace(job, retry_preset=unnamed)) == retry_policy(settings)


async def _jobs_of(tenant: Tenant) -> list[LeasedJob]:
    async with Carteiro.open("memory://") as post:
        await post.backend.tenants.define([tenant])
        await post.send(tenant=tenant.id, **HELLO)
        return await claimed(post.backend.store)


# --- working ----------------------------------------------------------------------------------


async def test_sent_message_is_delivered_by_a_worker() -> None:
    """From `send` to the sandbox's inbox."""
    async with Carteiro.open("memory://") as post:
        answer = await post.send(tenant="acme", **HELLO)

        await work(post)

        assert (await row_of(post, answer.id)).state is State.SENT
        [mail] = await post.backend.inbox.list(message=answer.id)
        assert mail.to == "ok@sandbox.test"


async def test_maintenance_runs_alongside_the_worker_and_ends_with_it() -> None:
    """A message that no worker of this process can run expires all the same."""
    async with Carteiro.open("memory://", provider="noop") as post:
        other = Carteiro(post.backend, post.settings, threads=post._threads)
        stranger = other.task("stranger", ttl=timedelta(milliseconds=1))(lambda: None)
        await stranger.send(tenant="acme")
        await asyncio.sleep(0.002)
        before = asyncio.all_tasks()

        await work(post)

        assert await post.backend.reading.states() == {State.EXPIRED: 1}
        async with asyncio.timeout(TOO_LONG):
            while asyncio.all_tasks() != before:
                await asyncio.sleep(
                    0.001
                )  # the store may be committing the last write of maintenance


async def test_stop_now_ends_a_worker_at_once() -> None:
    """Its undeclared jobs are there for the next one."""
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


async def test_unreachable_store_raises_in_send() -> None:
    """Nothing was promised, so nothing is lost: the sender may retry."""

    class Closed(Through):
        async def accept(self, new: Any) -> Any:
            raise StoreUnavailable(f"no room for {len(new)}")

    async with Carteiro.open("memory://") as post:
        closed = _with_store(post, Closed(post.backend.store))

        with pytest.raises(StoreUnavailable):
            await closed.send(tenant="acme", **HELLO)
        with pytest.raises(StoreUnavailable):
            await closed.accepting.one(Submission(make_email(HELLO), Tenant(ACME), "r"))


def _with_store(post: Carteiro, store: Any) -> Carteiro:
    return Carteiro(replace(post.backend, store=store), post.settings, threads=post._threads)


class _Counting(Through):
    """A store that counts the batches that it takes."""

    lists = 0

    async def accept(self, new: Sequence[NewMessage]) -> list[AcceptAnswer]:
        self.lists += 1
        return await super().accept(new)


class _FullAfter(Through):
    """A store that takes this many batches and then fails."""

    lists = 1

    async def accept(self, new: Sequence[NewMessage]) -> list[AcceptAnswer]:
        """Take it while there is room."""
        if not self.lists:
            raise StoreUnavailable("the disk is full")
        self.lists -= 1
        return await super().accept(new)


async def test_stored_part_of_a_long_list_is_reported_when_the_rest_fails() -> None:
    """Sending the whole list again would send the stored part twice."""
    async with Carteiro.open("memory://") as post:
        full = _with_store(post, _FullAfter(post.backend.store))

        answers = await full.send_many([{"tenant": "acme", **HELLO}] * 1001)

        assert all(isinstance(answer, Accepted) for answer in answers[:1000])
        assert isinstance(answers[1000], NotStored)
        with pytest.raises(StoreUnavailable):
            await full.send_many([{"tenant": "acme", **HELLO}])


@pytest.mark.parametrize("tenant", [None, "", 7, "a\nb", "nul\0", "x" * 256, "\ud800"])
async def test_tenant_name_must_be_printable(tenant: object) -> None:
    async with Carteiro.open("memory://") as post:
        [answer] = await post.send_many([{"tenant": tenant, **HELLO}])

        assert isinstance(answer, NotAccepted)
        assert [fault.field for fault in answer.fields] == ["tenant"]


async def test_worker_can_be_stopped_before_it_has_started() -> None:
    """A stop during the start is not forgotten."""
    async with Carteiro.open("memory://") as post:
        working = asyncio.create_task(post.run_worker())
        post.stop()

        async with asyncio.timeout(TOO_LONG):
            await working


async def test_time_that_cannot_be_read_back_is_refused() -> None:
    """It is beyond all calendars."""
    async with Carteiro.open("memory://") as post:
        with pytest.raises(InvalidMessage, match="scheduledAt"):
            await post.send(tenant="acme", scheduled_at="9999-12-31T23:59:59Z", **HELLO)


@pytest.mark.parametrize(("learn", "reads"), [("off", 0), ("suggest", 0), ("apply", 3)])
async def test_histories_are_read_only_to_apply_them(learn: str, reads: int) -> None:
    """By a one-shot run, and by a worker at its start."""
    asks: list[object] = []
    async with Carteiro.open("memory://", provider="sandbox", retry={"learn": learn}) as post:
        seen = asyncio.Event()

        async def asked(**each: object) -> list[object]:
            asks.append(each)
            seen.set()
            return []

        post.backend.failures.tenant_histories = asked  # type: ignore[method-assign, assignment]
        await post.work_off()
        await post.work_off()
        running = asyncio.create_task(post.run_worker())
        if reads:
            seen.clear()
            async with asyncio.timeout(TOO_LONG):
                await seen.wait()
        post.stop()
        await running

    assert len(asks) == reads
