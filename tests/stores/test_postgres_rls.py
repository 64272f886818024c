"""A database role of a tenant reaches this tenant's rows of the table queue, and nothing else."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from uuid import UUID, uuid4

import psycopg
import pytest

from carteiro.model import TenantId
from carteiro.stores.postgres import migrate
from support.postgres_server import SqlRefused
from support.shared_servers import shared_postgres
from support.table_queue import TEMPLATE, Application, an_application, an_office

pytestmark = pytest.mark.servers

MINE, THEIRS = "acme", "brasa"


@dataclass(frozen=True)
class Place:
    """A database of Carteiro, with a role of one tenant; both tenants have a row in it."""

    database: str
    owner: str
    client: str
    mine: UUID
    theirs: UUID

    def url(self, user: str) -> str:
        """Its address for this role."""
        return shared_postgres().url(self.database, user=user)

    def psql(self, sql: str, *, user: str | None = None) -> str:
        """The output of psql for the client, or another role."""
        return shared_postgres().psql(sql, self.database, user=user or self.client)


@pytest.fixture(params=["a superuser", "an owner", "an owner named carteiro"])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """Policies bind no superuser: it is safe where Carteiro is one, too."""
    server = shared_postgres()
    name = uuid4().hex
    database, owner, client = f"rls_{name}", f"owner_{name}", f"client_{name}"
    if request.param == "an owner named carteiro":
        server.template(migrate, owner="carteiro")
        owner = "carteiro"
    else:
        server.psql(f"CREATE ROLE {owner} LOGIN {'SUPERUSER' * (request.param == 'a superuser')}")
    server.psql(f"CREATE ROLE {client} LOGIN")
    server.psql(f"CREATE DATABASE {database} OWNER {owner}")
    try:
        with ThreadPoolExecutor(1) as thread:
            url = server.url(database, user=owner)
            thread.submit(asyncio.run, _prepare(url)).result()
        with an_application(url) as app:
            app.rows(f"SELECT carteiro.client_role('{client}', '{MINE}')")
            mine, theirs = (_enqueued(app, tenant) for tenant in (MINE, THEIRS))
        yield Place(database, owner, client, mine, theirs)
    finally:
        server.drop_database(database)
        server.psql(f"DROP ROLE {client}")
        if owner != "carteiro":  # others use it
            server.psql(f"DROP ROLE {owner}")


async def _prepare(url: str) -> None:
    await migrate(url)
    async with an_office(url, "default", MINE, THEIRS):
        pass


def _enqueued(app: Application, tenant: str) -> UUID:
    app.rows(f"SET carteiro.tenant = '{tenant}'")
    made = app.enqueue(f"{tenant}@example.com")
    app.rows("RESET carteiro.tenant")
    return made


def _tenant_of(place: Place, identity: str) -> str:
    sql = f"SELECT tenant FROM carteiro.messages WHERE id = '{identity}'"
    return place.psql(sql, user=place.owner)


def test_client_sees_its_own_rows(place: Place) -> None:
    """Also with another tenant chosen."""
    everything = "SELECT id FROM email_queue; SELECT id FROM process_pending_emails_for_retry(10)"

    assert place.psql(everything).split() == [str(place.mine)] * 2
    pretending = f"SET carteiro.tenant = '{THEIRS}'; {everything}"
    assert place.psql(pretending).split() == [str(place.mine)] * 2


@pytest.mark.parametrize("pretends", [False, True])
def test_client_enqueues_for_itself(place: Place, *, pretends: bool) -> None:
    """By the function and by an insert."""
    setting = f"SET carteiro.tenant = '{THEIRS}';" if pretends else ""
    by_function = f"SELECT enqueue_email(NULL, '{TEMPLATE}', 'a@b.cd', '{{}}')"
    by_insert = (
        f"INSERT INTO email_queue (template_type, recipient_email) VALUES ('{TEMPLATE}', 'a@b.cd')"
        " RETURNING id"
    )

    for statement in (by_function, by_insert):
        identity = place.psql(f"{setting} {statement}")

        assert _tenant_of(place, identity) == MINE


def test_client_changes_nothing_of_another_tenant(place: Place) -> None:
    """With any request, and with a known id."""
    before = place.psql("SELECT * FROM carteiro.ledger ORDER BY no", user=place.owner)
    updates = ("status = 'cancelled'", "max_retries = 9", "next_retry_at = now()")

    for assignment in updates:
        changed = f"UPDATE email_queue SET {assignment} WHERE id = '{place.theirs}' RETURNING id"
        assert place.psql(changed) == ""
    assert place.psql(f"SELECT mark_email_failed('{place.theirs}', 'no')") == "f"

    assert place.psql("SELECT * FROM carteiro.ledger ORDER BY no", user=place.owner) == before


def test_client_changes_its_own_rows(place: Place) -> None:
    """All documented uses of the table queue work."""
    place.psql(f"UPDATE email_queue SET max_retries = 9 WHERE id = '{place.mine}'")
    assert place.psql(f"SELECT mark_email_failed('{place.mine}', 'no')") == "t"
    place.psql("UPDATE email_queue SET status = 'cancelled'")

    told = place.psql("SELECT status, retries, max_retries FROM email_queue")
    assert told == "cancelled|1|9"


def test_client_reaches_no_table_and_no_function_of_carteiro(place: Place) -> None:
    """None of the existing ones."""
    relations = place.psql(
        "SELECT c.relname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace"
        " WHERE n.nspname = 'carteiro' AND c.relkind IN ('r', 'v', 'S')",
        user=place.owner,
    ).split()

    for relation in relations:
        with pytest.raises(SqlRefused, match="permission denied"):
            place.psql(f"SELECT * FROM carteiro.{relation}")
    for call in ("acting_tenant()", f"client_role('{place.client}', '{THEIRS}')", "claim()"):
        with pytest.raises(SqlRefused, match="permission denied"):
            place.psql(f"SELECT carteiro.{call}")
    assert {"messages", "queue_rows", "client_roles"} <= set(relations)
    with pytest.raises(SqlRefused, match="permission denied"):
        place.psql("DELETE FROM email_queue")


def test_view_hides_other_rows_from_functions(place: Place) -> None:
    """A function that reveals its arguments is called with the own rows alone."""
    tattle = (
        "CREATE FUNCTION pg_temp.tattle(seen text) RETURNS boolean LANGUAGE plpgsql COST 0.0000001"
        " AS $$ BEGIN RAISE EXCEPTION 'seen: %', seen; END $$;"
    )
    peeping = (
        f"SELECT * FROM email_queue WHERE recipient_email <> '{MINE}@example.com'"
        " AND pg_temp.tattle(recipient_email)"
    )

    assert place.psql(f"{tattle} {peeping}") == ""


def test_role_without_a_tenant_has_no_access(place: Place) -> None:
    """Even with a grant on the table it sees no row, and inserts none."""
    stranger = f"stranger_{uuid4().hex}"
    server = shared_postgres()
    server.psql(f"CREATE ROLE {stranger} LOGIN")
    try:
        for statement in (
            "SELECT * FROM email_queue",
            f"SELECT enqueue_email(NULL, '{TEMPLATE}', 'a@b.cd', '{{}}')",
            f"SELECT mark_email_failed('{place.mine}', 'no')",
            "SELECT * FROM process_pending_emails_for_retry(10)",
        ):
            with pytest.raises(SqlRefused, match="permission denied"):
                place.psql(statement, user=stranger)
        place.psql(
            f"GRANT SELECT, INSERT ON email_queue TO {stranger}",
            user=place.owner,
        )
        assert place.psql("SELECT id FROM email_queue", user=stranger) == ""
        with pytest.raises(SqlRefused, match="stands for no tenant"):
            place.psql(
                "INSERT INTO email_queue (template_type, recipient_email) VALUES ('a', 'a@b.cd')",
                user=stranger,
            )
    finally:
        server.psql(f"DROP OWNED BY {stranger}", place.database)
        server.psql(f"DROP ROLE {stranger}")


def test_role_that_is_set_counts(place: Place) -> None:
    """As with gateways that log in once and set a role for each request."""
    gateway = f"gateway_{uuid4().hex}"
    server = shared_postgres()
    server.psql(f"CREATE ROLE {gateway} LOGIN; GRANT {place.client} TO {gateway}")
    try:
        set_role = f"SET ROLE {place.client}; SELECT id FROM email_queue"
        assert place.psql(set_role, user=gateway) == str(place.mine)
        switching = (
            f"BEGIN; SET ROLE {place.client}; UPDATE email_queue SET status = 'cancelled';"
            " RESET ROLE; COMMIT"
        )
        place.psql(switching, user=gateway)
        statuses = place.psql("SELECT status FROM email_queue ORDER BY 1", user=place.owner)
        assert statuses.split() == ["cancelled", "pending"]
    finally:
        server.psql(f"DROP ROLE {gateway}")


def _is_bound_by_policies(place: Place) -> bool:
    sql = f"SELECT rolsuper FROM pg_roles WHERE rolname = '{place.owner}'"
    return place.psql(sql, user=place.owner) == "f"


def test_owner_is_bound_by_its_chosen_tenant(place: Place) -> None:
    """So code with its rights that forgets the tenant finds no other rows."""
    rows = "SELECT tenant FROM carteiro.queue_rows ORDER BY tenant"
    chosen = place.psql(f"SET carteiro.tenant = '{MINE}'; {rows}", user=place.owner).split()
    views = place.psql(
        f"SET carteiro.tenant = '{MINE}'; SELECT id FROM email_queue", user=place.owner
    )

    assert place.psql(rows, user=place.owner).split() == [MINE, THEIRS]
    assert views == str(place.mine)
    if _is_bound_by_policies(place):
        assert chosen == [MINE]


def test_role_of_an_erased_tenant_gets_no_other_tenant(place: Place) -> None:
    """It could be the default tenant's, if its entry were deleted."""

    async def erase() -> None:
        async with an_office(place.url(place.owner), "default") as post:
            while (erased := await post.backend.tenants.erase(TenantId(MINE))) and erased.has_more:
                pass

    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, erase()).result()

    assert place.psql("SELECT * FROM email_queue") == ""
    with pytest.raises(SqlRefused, match=f'no tenant "{MINE}"'):
        place.psql(f"SELECT enqueue_email(NULL, '{TEMPLATE}', 'a@b.cd', '{{}}')")


def test_only_an_existing_tenant_can_have_a_role(place: Place) -> None:
    """A typo is refused at once."""
    with (
        an_application(place.url(place.owner)) as app,
        pytest.raises(psycopg.errors.ForeignKeyViolation),
    ):
        app.rows(f"SELECT carteiro.client_role('{place.client}', 'nobody')")
