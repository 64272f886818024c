"""Functions and views of Postgres: created again on the next open when their text changed, and only then."""

import asyncio
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from carteiro.errors import StoreError
from carteiro.model.checkup import Level
from carteiro.stores.postgres import migrate, open_postgres
from carteiro.stores.postgres.examine import examine
from carteiro.stores.postgres.migrating import FUNCTIONS
from support.postgres_server import OWNERS
from support.shared_servers import a_migrated_database, shared_postgres
from support.table_queue import TEMPLATE, an_office

pytestmark = pytest.mark.servers

_OBJECTS = """
SELECT c.oid, c.oid::regclass::text, concat(
    coalesce(c.relacl, acldefault('r', c.relowner)),
    (
        SELECT string_agg(concat(a.attname, a.attacl), ',' ORDER BY a.attname)
        FROM pg_attribute AS a WHERE a.attrelid = c.oid
    )
)
FROM pg_class AS c
WHERE c.relkind = 'v' AND c.relnamespace IN ('carteiro'::regnamespace, 'public'::regnamespace)
UNION ALL
SELECT p.oid, p.oid::regprocedure::text, coalesce(p.proacl, acldefault('f', p.proowner))::text FROM pg_proc AS p
WHERE p.pronamespace IN ('carteiro'::regnamespace, 'public'::regnamespace)
UNION ALL
SELECT p.oid, p.polname, pg_get_expr(p.polqual, p.polrelid) FROM pg_policy AS p
ORDER BY 1
"""
_SEND = f"SELECT enqueue_email(NULL, '{TEMPLATE}', 'ana@example.com', '{{}}')"


class Texts:
    """A copy of the texts, for changes."""

    def __init__(self, folder: Path) -> None:
        with resources.as_file(FUNCTIONS) as ours:
            self.folder = Path(shutil.copytree(ours, folder))

    def change(self, topic: str, old: str, new: str) -> None:
        """Replace a text that occurs once."""
        file = self.folder / f"{topic}.sql"
        text = file.read_text("utf-8")
        assert text.count(old) == 1
        file.write_text(text.replace(old, new), "utf-8")

    def add(self, statement: str) -> None:
        """Another statement, after all others."""
        with (self.folder / "table_queue.sql").open("a", encoding="utf-8") as file:
            file.write(f"{statement};\n")


@pytest.fixture
def texts(tmp_path: Path) -> Texts:
    """The texts of this version, for changes."""
    return Texts(tmp_path / "functions")


@pytest.fixture(params=OWNERS)
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """A database of this version."""
    with a_migrated_database(request.param) as made:
        yield made


@pytest.fixture
def role(url: str) -> Iterator[str]:
    """A client role of the tenant ``acme``."""
    server, name = shared_postgres(), f"client_{uuid4().hex}"
    server.psql(f"CREATE ROLE {name} LOGIN")
    try:
        asyncio.run(_prepare(url))
        rows(url, SQL("SELECT carteiro.client_role({}, 'acme')").format(name))
        yield name
    finally:
        server.psql(f"DROP OWNED BY {name}", url.rpartition("/")[2])
        server.psql(f"DROP ROLE {name}")


async def _prepare(url: str) -> None:
    async with an_office(url, "acme"):
        pass


def rows(url: str, statement: Any) -> list[tuple[Any, ...]]:
    """The rows of a statement, in a separate transaction."""
    with psycopg.connect(url, autocommit=True) as db:
        ran = db.execute(statement)
        return ran.fetchall() if ran.description else []


def as_role(url: str, name: str) -> str:
    """The same database for another role."""
    return shared_postgres().url(url.rpartition("/")[2], user=name)


@contextmanager
def a_role(attributes: str) -> Iterator[str]:
    """A temporary role."""
    server, name = shared_postgres(), f"role_{uuid4().hex}"
    server.psql(f"CREATE ROLE {name} LOGIN {attributes}")
    try:
        yield name
    finally:
        server.psql(f"DROP ROLE {name}")


async def test_unchanged_texts_write_nothing(url: str, texts: Texts) -> None:
    """A connection that can only read opens the database."""
    before = rows(url, _OBJECTS)

    await migrate(f"{url}?default_transaction_read_only=on", texts.folder)

    assert rows(url, _OBJECTS) == before


async def test_changed_text_is_applied_on_the_next_open(url: str, texts: Texts) -> None:
    """Until then doctor says so; an open by the version before brings its own texts back."""
    texts.change("common", "* 1000)::bigint $$", "* 1000)::bigint + 86400000000 $$")
    ahead = SQL("SELECT carteiro.now_ms() > extract(epoch FROM now()) * 1000 + 86400000")
    before = rows(url, _OBJECTS)

    await migrate(url, texts.folder)

    assert rows(url, ahead) == [(True,)]
    findings = {each.check: each async for each in examine(url)}
    assert (findings["schema"].level, findings["schema"].advice) == (
        Level.FAIL,
        "run carteiro migrate",
    )
    async with open_postgres(url):
        pass
    assert rows(url, ahead) == [(False,)]
    assert sorted(row[1:] for row in rows(url, _OBJECTS)) == sorted(row[1:] for row in before)


async def test_other_columns_and_signatures_are_applied(url: str, texts: Texts) -> None:
    """Postgres cannot replace such views and functions: they are dropped, and so are those without a text."""
    texts.change("views", "m.id AS outboxId, m.tenant AS companyId, m.rec", "m.id AS logId, m.rec")
    texts.change(
        "table_queue", " AS max_retries,\n    (", " AS most,\n    1 AS max_retries,\n    ("
    )
    texts.change(
        "common", "carteiro.due_of(rank bigint)", "carteiro.due_of(rank bigint, x text DEFAULT '')"
    )

    await migrate(url, texts.folder)

    rows(url, "SELECT logId FROM email_logs")
    rows(url, "SELECT most FROM email_queue")
    taken = "SELECT proargtypes::regtype[]::text FROM pg_proc WHERE proname = 'due_of'"
    assert rows(url, taken) == [("[0:1]={bigint,text}",)]


async def test_rights_of_client_roles_survive(url: str, role: str, texts: Texts) -> None:
    """The granted ones, and not those revoked by hand."""
    rows(url, SQL("REVOKE SELECT ON public.dlq FROM {}").format(Identifier(role)))
    before = sorted(row[1:] for row in rows(url, _OBJECTS))
    texts.add("SELECT 1")

    await migrate(url, texts.folder)

    assert sorted(row[1:] for row in rows(url, _OBJECTS)) == before
    client = as_role(url, role)
    [[made]] = rows(client, _SEND)
    rows(client, "UPDATE email_queue SET status = 'cancelled'")
    rows(client, "SELECT * FROM email_logs")
    assert rows(client, "SELECT id, status FROM email_queue") == [(made, "cancelled")]
    for refused in (
        "SELECT * FROM dlq",
        "SELECT carteiro.now_ms()",
        "BEGIN; LOCK TABLE email_queue",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            rows(client, refused)


async def test_processes_that_start_at_once_apply_it_once(url: str, texts: Texts) -> None:
    """The others wait, and find it done."""
    rows(url, "CREATE TABLE public.applied (at timestamptz)")
    texts.add("INSERT INTO public.applied VALUES (now())")

    await asyncio.gather(*(migrate(url, texts.folder) for _ in range(8)))

    assert rows(url, "SELECT count(*) FROM public.applied") == [(1,)]


async def test_failing_text_changes_nothing(url: str, texts: Texts) -> None:
    """It is all or nothing, and a version that works can open next."""
    before = rows(url, _OBJECTS)
    texts.add("SELECT 1 / 0")

    with pytest.raises(StoreError, match="division by zero"):
        await migrate(url, texts.folder)

    assert rows(url, _OBJECTS) == before


async def test_dependent_view_of_others_stays(url: str, texts: Texts) -> None:
    """Our view is replaced in place, as long as its columns stay."""
    rows(url, "CREATE VIEW public.report AS SELECT count(*) FROM public.email_logs")
    texts.change("views", "WHERE a.sees_all AND m.kind = 'email:send'\n", "WHERE false\n")

    await migrate(url, texts.folder)

    assert rows(url, "SELECT * FROM public.report") == [(0,)]
    [[definition]] = rows(url, "SELECT pg_get_viewdef('carteiro.visible_emails'::regclass)")
    assert "false" in definition
    assert rows(url, "SELECT to_regclass('carteiro.email_logs')") == [(None,)]


async def test_relation_of_the_application_stays(texts: Texts) -> None:
    """Ours, whose name it has in ``public``, stays in ``carteiro``."""
    with shared_postgres().a_database() as url:
        rows(url, "CREATE TABLE public.recipients (mine text)")
        rows(url, "CREATE VIEW public.dlq AS SELECT 1 AS mine")
        await migrate(url)
        texts.add("SELECT 1")

        await migrate(url, texts.folder)

        rows(url, "SELECT r.mine, d.mine FROM public.recipients AS r, public.dlq AS d")
        rows(url, "SELECT companyId FROM carteiro.recipients")
        rows(url, "SELECT jobId FROM carteiro.dlq")


async def test_functions_belong_to_the_owner_of_the_schema(texts: Texts) -> None:
    """Also when a superuser applies them; a role outside of the owner's members cannot."""
    server = shared_postgres()
    with server.a_database(migrate, owner="carteiro") as url, a_role("") as stranger:
        texts.add("SELECT 1")
        rows(url, SQL("GRANT USAGE ON SCHEMA carteiro TO {}").format(Identifier(stranger)))
        rows(url, SQL("GRANT SELECT ON carteiro.migrations TO {}").format(Identifier(stranger)))

        with pytest.raises(StoreError, match="permission denied"):
            await migrate(as_role(url, stranger), texts.folder)
        await migrate(as_role(url, OWNERS[0]), texts.folder)

        owners = (
            "SELECT DISTINCT proowner::regrole::text FROM pg_proc"
            " WHERE pronamespace = 'carteiro'::regnamespace"
        )
        assert rows(url, owners) == [("carteiro",)]
        server.psql(f"DROP OWNED BY {stranger}", url.rpartition("/")[2])


async def test_views_are_not_hidden_where_they_cannot_be_shown_again(texts: Texts) -> None:
    """The owner may no longer create in ``public``: it gets an error, and clients see no change."""
    server = shared_postgres()
    with server.a_database(migrate, owner="carteiro") as url:
        server.psql("ALTER SCHEMA public OWNER TO postgres", url.rpartition("/")[2])
        texts.add("SELECT 1")

        with pytest.raises(StoreError, match="GRANT CREATE ON SCHEMA public TO carteiro"):
            await migrate(url, texts.folder)

        rows(url, "SELECT * FROM public.email_queue")
