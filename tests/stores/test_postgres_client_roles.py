"""A client role of the database cannot block other mail by an open transaction.

Each attack is left open while another tenant's mail is accepted, claimed, sent, cancelled and pruned.
"""

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import psycopg
import pytest

from carteiro.model import ZERO, ApiLimits, IdempotencyKey, NewRecipient, RedriveAnswer, TenantId
from carteiro.ports import Backend
from carteiro.stores.postgres import migrate
from support.builders import a_message, sent
from support.burying import buried
from support.postgres_server import OWNERS
from support.shared_servers import shared_postgres
from support.steps import accepted, claimed_and_declared, settled
from support.table_queue import TEMPLATE, Application, an_application, an_office
from support.working import TOO_LONG

pytestmark = pytest.mark.servers

MINE, THEIRS = TenantId("acme"), TenantId("brasa")
VIEWS = ("email_queue", "email_outbox", "email_logs", "email_events", "recipients", "dlq")


@dataclass(frozen=True)
class Place:
    """A database of Carteiro, with the address for a client role of one tenant."""

    url: str
    client_url: str
    role: str

    @contextmanager
    def client(self, *, autocommit: bool = False) -> Iterator[Application]:
        """The client, in a transaction that stays open unless it commits it."""
        with an_application(self.client_url, autocommit=autocommit) as client:
            yield client


@pytest.fixture(params=OWNERS)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """Both tenants exist; the client has a pending row, and so has the other tenant."""
    server, role = shared_postgres(), f"client_{uuid4().hex}"
    with server.a_database(migrate, owner=request.param) as url:
        database = url.rpartition("/")[2]
        server.psql(f"CREATE ROLE {role} LOGIN")
        try:
            with ThreadPoolExecutor(1) as thread:
                thread.submit(asyncio.run, _prepare(url)).result()
            with an_application(url) as owner:
                owner.rows(f"SELECT carteiro.client_role('{role}', '{MINE}')")
                for tenant in (MINE, THEIRS):
                    owner.rows(f"SET carteiro.tenant = '{tenant}'")
                    owner.enqueue(f"{tenant}@example.com")
            yield Place(url, server.url(database, user=role), role)
        finally:
            server.psql(f"DROP OWNED BY {role}", database)
            server.psql(f"DROP ROLE {role}")


async def _prepare(url: str) -> None:
    async with an_office(url, "default", MINE, THEIRS):
        pass


async def _everything_goes_on(url: str) -> None:
    """All operations of others, from accepting to pruning, within a time that no lock would leave."""
    async with an_office(url, MINE, THEIRS) as post, asyncio.timeout(TOO_LONG):
        backend = post.backend
        with an_application(url) as owner:
            owner.rows(f"SET carteiro.tenant = '{THEIRS}'; SET statement_timeout = '20s'")
            row = owner.enqueue()
            cancelled = owner.enqueue()
            owner.update(cancelled, "status = 'cancelled'")
            await post.work_off()
            assert owner.row(row)["status"] == "sent"
            assert owner.row(cancelled)["status"] == "cancelled"
        await _path(backend)
        await backend.upkeep.expire(limit=100)
        await backend.upkeep.prune(bodies=ZERO, histories=timedelta(days=1))
        await post.send(tenant=MINE, to="b@example.com", subject="a", text="b")
        await post.work_off()


async def _path(backend: Backend) -> None:
    store = backend.store
    new = a_message(
        THEIRS,
        key=IdempotencyKey(uuid4().hex, "digest"),
        limits=ApiLimits(100, 1000, 10000),
        recipient=NewRecipient("ana@example.com", external_id="ana"),
    )
    [message] = await accepted(store, new)
    job = await claimed_and_declared(store)
    assert job.lease.job == message
    await settled(store, job, sent())
    waiting, dead = a_message(THEIRS), await buried(backend, THEIRS)
    await accepted(store, waiting)
    await store.cancel([waiting.id], tenant=THEIRS)
    assert await backend.dead_letters.redrive([dead], by="ana") == [RedriveAnswer.REDRIVEN]


ATTACKS = {
    "updates with constraints checked at once": (
        "SET CONSTRAINTS ALL IMMEDIATE",
        "UPDATE email_queue SET status = 'cancelled'",
    ),
    "reschedules, and marks as failed": (
        "UPDATE email_queue SET next_retry_at = now(), max_retries = 5",
        "SELECT mark_email_failed(id, 'no') FROM email_queue",
    ),
    "inserts": (
        f"SELECT enqueue_email(NULL, '{TEMPLATE}', 'a@b.cd', '{{}}')",
        f"INSERT INTO email_queue (template_type, recipient_email) VALUES ('{TEMPLATE}', 'a@b.cd')",
    ),
    "reads everything, and asks for what is due": (
        *(f"SELECT count(*) FROM {view}" for view in VIEWS),
        "SELECT * FROM process_pending_emails_for_retry(100)",
    ),
    "locks what it may read": tuple(f"LOCK TABLE {view} IN ACCESS SHARE MODE" for view in VIEWS),
    "takes every advisory lock that anybody holds": (
        "SELECT pg_advisory_lock(n) FROM generate_series(1, 100) AS n",
        "SELECT pg_advisory_lock(hashtextextended('carteiro.access_keys', 0))",
        "SELECT pg_advisory_lock(hashtextextended('carteiro.accept', 0))",
        f"SELECT pg_advisory_lock({0x6361_7274_6569_726F})",
    ),
}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())
async def test_open_transaction_of_a_client_blocks_no_other(
    place: Place, attack: tuple[str, ...]
) -> None:
    """Its requests are applied, or refused, once it commits."""
    with place.client() as client:
        client.rows("SET LOCAL statement_timeout = 0")
        client.rows("SET LOCAL idle_in_transaction_session_timeout = 0")
        for statement in attack:
            client.rows(statement)

        await _everything_goes_on(place.url)

        client.connection.commit()
    async with an_office(place.url) as post:
        await post.work_off()


def _may(client: Application, statement: str) -> bool:
    """Return whether a statement is allowed; it is rolled back."""
    try:
        client.rows(statement)
    except (psycopg.errors.FeatureNotSupported, psycopg.errors.InsufficientPrivilege):
        return False
    else:
        return True
    finally:
        client.connection.rollback()


def test_a_client_cannot_lock_a_view(place: Place) -> None:
    """With it all tables behind it would be locked, for everybody."""
    modes = ("ROW SHARE", "ROW EXCLUSIVE", "SHARE", "EXCLUSIVE", "ACCESS EXCLUSIVE")
    locks = [f"LOCK TABLE {view} IN {mode} MODE NOWAIT" for view in VIEWS for mode in modes]
    with place.client() as client:
        assert [each for each in locks if _may(client, each)] == []


def test_a_client_cannot_lock_through_a_view_of_its_own(place: Place) -> None:
    """An object that it owns has no more rights than the role itself."""
    with place.client() as client:
        for view in VIEWS:
            client.rows(f"CREATE TEMP VIEW mine AS SELECT * FROM {view}")
            assert not _may(client, "LOCK TABLE mine NOWAIT"), view


def test_a_client_cannot_lock_rows(place: Place) -> None:
    """They are the ledger's."""
    strengths = ("UPDATE", "NO KEY UPDATE", "SHARE", "KEY SHARE")
    locks = [f"SELECT * FROM {view} FOR {strength}" for view in VIEWS for strength in strengths]
    with place.client() as client:
        assert [each for each in locks if _may(client, each)] == []


def test_refused_row_lock_is_explained(place: Place) -> None:
    """In a sentence, unless a superuser owns the database: no policy binds one."""
    with an_application(place.url) as owner:
        is_superuser = owner.value("SELECT rolsuper FROM pg_roles WHERE rolname = current_user")
    says = "outer join" if is_superuser else "email_queue: rows cannot be locked"

    with place.client() as client, pytest.raises(psycopg.errors.FeatureNotSupported, match=says):
        client.rows("SELECT * FROM email_queue FOR UPDATE SKIP LOCKED")


def test_client_may_not_delete_rows(place: Place) -> None:
    """The right to delete would be one to lock the ledger."""
    with (
        place.client() as client,
        pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied"),
    ):
        client.rows("DELETE FROM email_queue")


def test_member_of_a_client_role_has_no_tenant(place: Place) -> None:
    """It has none of the role's limits, so it gets nothing: above all not the rows of the tenant `default`."""
    member = f"{place.role}_member"
    server = shared_postgres()
    server.psql(f"CREATE ROLE {member} LOGIN IN ROLE {place.role}")
    try:
        with an_application(place.url) as owner:
            owner.rows("SET carteiro.tenant = 'default'")
            owner.enqueue()
        with an_application(place.client_url.replace(place.role, member)) as client:
            for view in VIEWS:
                assert client.rows(f"SELECT * FROM {view}") == []
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="stands for no tenant"):
                client.enqueue()
    finally:
        server.psql(f"DROP ROLE {member}")


def test_client_cannot_learn_the_notification_channel(place: Place) -> None:
    """With its name it could make every process work for each notification."""
    with an_application(place.url) as owner:
        channel = owner.value("SELECT channel FROM carteiro.wake_channel")

    with place.client(autocommit=True) as client:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            client.rows("SELECT channel FROM carteiro.wake_channel")
        assert client.rows("SELECT proname FROM pg_proc WHERE prosrc LIKE %s", f"%{channel}%") == []
        assert (
            client.rows("SELECT 1 FROM pg_stat_activity WHERE query LIKE %s", f"%{channel}%") == []
        )


async def test_no_advisory_lock_is_taken(place: Place) -> None:
    """Any connected role can see them all, and take the same."""
    seen: list[object] = []
    locks = "SELECT * FROM pg_locks WHERE locktype = 'advisory'"
    async with an_office(place.url, THEIRS) as post:
        with an_application(place.client_url) as client:
            connection = await asyncpg.connect(place.url)
            transaction = connection.transaction()
            await transaction.start()
            await post.send(
                tenant=THEIRS,
                to="ana@example.com",
                subject="a",
                text="b",
                idempotency_key="key",
                recipient={"email": "ana@example.com", "externalId": "ana"},
                connection=connection,
            )
            seen += client.rows(locks)
            held = client.value("SELECT count(*) FROM pg_locks WHERE granted")
            await transaction.rollback()
            await connection.close()

    assert seen == []
    assert held > 1


async def test_a_client_sees_its_own_tenant_in_every_view(place: Place) -> None:
    """Nothing of the other's, whatever it says it is; the owner sees both, or the one it has chosen."""
    for tenant in (MINE, THEIRS):
        await _told(place.url, tenant)
    with an_application(place.url) as owner, place.client() as client:
        everything = _tenants_seen(owner)
        owner.rows(f"SET carteiro.tenant = '{MINE}'")
        mine = _tenants_seen(owner)
        client.rows(f"SET carteiro.tenant = '{THEIRS}'")
        found = _tenants_seen(client)

    assert found == mine
    assert all(found[view] and found[view] < everything[view] for view in VIEWS), found


def _tenants_seen(application: Application) -> dict[str, set[str]]:
    """The values that identify tenants, by view."""
    columns = {"email_queue": "recipient_email", "email_events": "emailLogId"}
    query = "SELECT DISTINCT {}::text AS found FROM {}"
    return {
        view: {
            each["found"]
            for each in application.rows(query.format(columns.get(view, "companyId"), view))
        }
        for view in VIEWS
    }


async def _told(url: str, tenant: TenantId) -> None:
    async with an_office(url, tenant) as post:
        await post.work_off()
        await buried(post.backend, tenant)
        person = NewRecipient(f"{tenant}@example.com", external_id=f"{tenant}-ana")
        await accepted(post.backend.store, a_message(tenant, recipient=person))


def test_statements_and_pauses_of_a_client_are_bounded(place: Place) -> None:
    """It may lift the bounds: then it still locks nothing that others need."""
    with place.client(autocommit=True) as client:
        bounds = [
            client.value(f"SHOW {each}")
            for each in ("statement_timeout", "idle_in_transaction_session_timeout")
        ]

    assert bounds == ["30s", "30s"]


def test_connections_of_a_client_are_bounded(place: Place) -> None:
    """A bound that a superuser has set stays."""
    limit = "SELECT rolconnlimit FROM pg_roles WHERE rolname = %s"
    with an_application(place.url) as owner:
        made = owner.value(limit, place.role)
        shared_postgres().psql(f"ALTER ROLE {place.role} CONNECTION LIMIT 70")
        owner.rows(f"SELECT carteiro.client_role('{place.role}', '{MINE}')")
        again = owner.value(limit, place.role)

    assert (made, again) == (20, 70)


def test_missing_right_to_bound_connections_is_reported_with_the_command(place: Place) -> None:
    """Only a superuser may bound a superuser; the role is created all the same."""
    told: list[str] = []
    shared_postgres().psql(f"ALTER ROLE {place.role} SUPERUSER CONNECTION LIMIT -1")
    with an_application(place.url) as owner:
        owner.connection.add_notice_handler(lambda each: told.append(each.message_primary or ""))
        owner.rows(f"SELECT carteiro.client_role('{place.role}', '{MINE}')")
        may = owner.value("SELECT rolsuper FROM pg_roles WHERE rolname = current_user")

    commands = [each for each in told if f"ALTER ROLE {place.role} CONNECTION LIMIT 20" in each]
    assert len(commands) == (0 if may else 1)


def test_manual_grants_are_revoked(place: Place) -> None:
    """A role that is made a client role again has only the rights of one."""
    with an_application(place.url) as owner, place.client() as client:
        owner.rows(f"GRANT ALL ON email_queue TO {place.role}")
        client.rows("LOCK TABLE email_queue")
        client.connection.rollback()

        owner.rows(f"SELECT carteiro.client_role('{place.role}', '{MINE}')")

        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            client.rows("LOCK TABLE email_queue")


# --- plans --------------------------------------------------------------------------------------

_SOME = """
WITH new AS (
    SELECT nextval('carteiro.message_no') AS no, gen_random_uuid() AS id, '{tenant}' AS who, carteiro.now_ms() AS at
    FROM generate_series(1, {count}) AS n
),
messages AS (
    INSERT INTO carteiro.messages (
        no, id, tenant, kind, declares, delivery, priority, ttl_ms, request_id, recipient_id, to_address, subject,
        template_type, due_at, created_at, content
    )
    SELECT no, id::text, who, 'email:send', true, 'at_least_once', 5, 86400000, who, who, who, who, who, at, at,
        to_json(who)
    FROM new
),
entries AS (
    INSERT INTO carteiro.entries (
        message_no, state, due_at, expires_at, tenant, is_email, created_at, finished_at, provider_message_id,
        timeline
    )
    SELECT no, 'of ' || who, at, at + 86400000, who, true, at, at, who, format('["%s",%s,{{}}],', who, at) FROM new
),
letters AS (
    INSERT INTO carteiro.dead_letters (
        message_id, message_no, tenant, kind, reason, category, code, failure, failed_attempts, failed_at, enqueued_at,
        moved_at, ttl_ms, failure_group, said
    )
    SELECT id::text, no, who, 'email:send', who, who, who, '{{}}', 1, at, at, at, 1000000, who, who FROM new
),
people AS (
    INSERT INTO carteiro.recipient_records (id, tenant, email, nome, created_at)
    SELECT id::text, who, who, who, at FROM new
)
INSERT INTO carteiro.queue_rows (id, message_no, tenant, max_retries) SELECT id, no, who, 3 FROM new
"""
_ASKED = {
    "email_queue": ("recipient_email", "template_type", "resend_id", "status"),
    "email_outbox": ('"to"', "subject", "requestId", "status", "html", "lastError"),
    "email_logs": ('"to"', "subject", "requestId", "status", "sesMessageId", "recipientId"),
    "email_events": ("type",),
    "recipients": ("email", "externalId", "nome"),
    "dlq": ("lastFailureCode", "reason", "category", "originalData"),
}
_TIMES = {"email_queue": "created_at", "email_outbox": "enqueuedAt", "email_logs": "createdAt"}
_TIMES |= {"email_events": "createdAt", "recipients": "createdAt", "dlq": "movedToDLQAt"}
_COUNTED = (
    "Actual Rows",
    "Actual Loops",
    "Rows Removed by Filter",
    "Rows Removed by Join Filter",
    "Rows Removed by Index Recheck",
)


def _counted(client: Application, view: str, condition: str) -> list[tuple[object, ...]]:
    """The figures of each step of a client's query."""
    explain = "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, FORMAT JSON)"
    [plan] = client.value(f"{explain} SELECT 1 FROM {view} WHERE {condition}")
    return [
        (
            each["Node Type"],
            each.get("Relation Name") or each.get("Index Name"),
            *(each.get(name) for name in _COUNTED),
        )
        for each in _steps(plan["Plan"])
    ]


def _steps(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for each in plan.get("Plans", ()):
        yield from _steps(each)


def _conditions(view: str, value: str) -> list[str]:
    """Conditions on a value, in all possible forms."""
    state = f"of {value}"
    return [
        each
        for column in _ASKED[view]
        for said in [state if column == "status" else value]
        for each in (f"{column} = '{said}'", f"{column} >= '{said}' AND {column} < '{said}~'")
    ]


def _different(one: list[list[Any]], other: list[list[Any]]) -> list[tuple[Any, Any]]:
    """The steps with other figures; the plans are equal."""
    steps = zip(chain.from_iterable(one), chain.from_iterable(other), strict=True)
    return [pair for pair in steps if pair[0] != pair[1]]


_WAYS = {
    "as it likes": (),
    "by indexes": ("SET enable_seqscan = off",),
    "by bitmaps": ("SET enable_seqscan = off", "SET enable_indexscan = off"),
    "without indexes": ("SET enable_indexscan = off", "SET enable_bitmapscan = off"),
    "joined by hashes": ("SET enable_nestloop = off",),
}


def test_query_plan_reveals_nothing_about_other_tenants(place: Place) -> None:
    """The plan for another tenant's rows looks like the plan for rows that do not exist."""
    with an_application(place.url) as owner:
        owner.rows(_SOME.format(tenant=MINE, count=20))
        owner.rows(_SOME.format(tenant=THEIRS, count=200))
    nobody = "brasx"
    for name, way in _WAYS.items():
        with place.client(autocommit=True) as client:
            for each in way:
                client.rows(each)
            for view in VIEWS:
                theirs = [_counted(client, view, each) for each in _conditions(view, THEIRS)]
                nobodys = [_counted(client, view, each) for each in _conditions(view, nobody)]
                assert _different(theirs, nobodys) == [], (view, name)


def test_query_plan_does_not_reveal_growth_of_other_tenants(place: Place) -> None:
    """With indexes only: `pg_class` shows the size of a whole table to everybody anyway.

    Of two indexes that cost the same, the planner takes the smaller one, and that may change with the growth of either.
    """
    asked = {
        view: [
            *_conditions(view, MINE),
            *_conditions(view, THEIRS),
            f"{_TIMES[view]} > now() - interval '1 hour'",
        ]
        for view in VIEWS
    }
    with an_application(place.url) as owner, place.client(autocommit=True) as client:
        owner.rows(_SOME.format(tenant=MINE, count=20))
        owner.rows(_SOME.format(tenant=THEIRS, count=2000))
        client.rows("SET enable_seqscan = off")
        before = {view: [_counted(client, view, each) for each in asked[view]] for view in VIEWS}

        owner.rows(_SOME.format(tenant=THEIRS, count=50))

        after = {view: [_counted(client, view, each) for each in asked[view]] for view in VIEWS}
    for view in VIEWS:
        pairs = _different(before[view], after[view])
        assert [pair for pair in pairs if _nameless(pair[0]) != _nameless(pair[1])] == [], view


def _nameless(step: tuple[object, ...]) -> tuple[object, ...]:
    kind, _, *figures = step
    return kind, *figures


# --- reads --------------------------------------------------------------------------------------

_MANY = 100_000
_BULK = f"""
WITH new AS (
    SELECT nextval('carteiro.message_no') AS no, gen_random_uuid() AS id,
        CASE WHEN n % 10 = 0 THEN '{MINE}' ELSE '{THEIRS}' END AS tenant, carteiro.now_ms() - n AS at
    FROM generate_series(1, {_MANY}) AS n
),
messages AS (
    INSERT INTO carteiro.messages (
        no, id, tenant, kind, declares, delivery, priority, ttl_ms, request_id, to_address, due_at, created_at, content
    )
    SELECT no, id::text, tenant, 'email:send', true, 'at_least_once', 5, 86400000, 'r', 'a@b.cd', at, at, '{{}}'
    FROM new
),
entries AS (
    INSERT INTO carteiro.entries (
        message_no, state, due_at, expires_at, tenant, is_email, created_at, finished_at, timeline
    )
    SELECT no, 'SENT', at, at + 86400000, tenant, true, at, at, format('["SENT_ATTEMPT",%s,{{}}],', at) FROM new
)
INSERT INTO carteiro.queue_rows (id, message_no, tenant, max_retries) SELECT id, no, tenant, 3 FROM new
"""


def _blocks(client: Application, query: str, *parameters: object) -> int:
    explain = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {query}"
    [plan] = client.value(explain, *parameters)
    return int(plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"])


def test_row_is_found_without_reading_others(place: Place) -> None:
    """Of 100,000 rows, 10,000 of them the client's own, each look-up touches a few pages."""
    with an_application(place.url) as owner:
        owner.rows(_BULK)
        shared_postgres().psql("ANALYZE", place.url.rpartition("/")[2])
    with place.client(autocommit=True) as client:
        some: UUID = client.value("SELECT id FROM email_queue OFFSET 5000 LIMIT 1")
        another: UUID = client.value("SELECT id FROM email_queue OFFSET 6000 LIMIT 1")
        client.rows("UPDATE email_queue SET max_retries = 4 WHERE id = %s", another)  # the catalog
        found = {
            "email_queue": _blocks(client, "SELECT * FROM email_queue WHERE id = %s", some),
            "email_logs": _blocks(
                client, "SELECT * FROM email_logs WHERE outboxId = %s", str(some)
            ),
            "email_outbox": _blocks(client, "SELECT * FROM email_outbox WHERE id = %s", str(some)),
            "email_events": _blocks(
                client, "SELECT * FROM email_events WHERE emailLogId = %s", str(some)
            ),
            "an update": _blocks(
                client, "UPDATE email_queue SET max_retries = 4 WHERE id = %s", some
            ),
            "mark_email_failed": _blocks(client, "SELECT mark_email_failed(%s, 'no')", some),
        }
    few = 300  # pages, most of them of the catalog

    assert {name: blocks for name, blocks in found.items() if blocks > few} == {}, json.dumps(found)
