"""The classic views on Postgres: the names of those on SQLite, and the stored data."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

import generate
from carteiro.model import Dead, DeadReason, NewRecipient
from carteiro.stores.postgres import PostgresOptions, migrate, open_postgres
from carteiro.stores.sqlite import open_sqlite
from support.builders import ACME, a_failure, tenants_named
from support.burying import buried
from support.clock import StoreClock
from support.pages import blocks_of
from support.postgres_server import OWNERS
from support.shared_servers import a_migrated_database, shared_postgres
from support.steps import accepted_recipient, attempted

pytestmark = pytest.mark.servers

PAGE = "docs/reference/sql.md"
VIEWS = ("email_outbox", "email_logs", "email_events", "recipients", "dlq")


@pytest.fixture(params=OWNERS)
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """A database with only the schema, with any owner."""
    with a_migrated_database(request.param) as made:
        yield made


def _rows(url: str, view: str) -> tuple[list[str], list[tuple[object, ...]]]:
    with psycopg.connect(url) as db:
        cursor = db.execute(SQL("SELECT * FROM {}").format(Identifier(view)))
        return [column.name for column in cursor.description or ()], cursor.fetchall()


@pytest.mark.parametrize("view", VIEWS)
async def test_query_finds_the_same_columns_as_on_sqlite(
    url: str, tmp_path: Path, view: str
) -> None:
    """In the same order; in lower case, as an unquoted name reads."""
    async with open_sqlite(tmp_path / "post.db"):
        pass
    with closing(sqlite3.connect(tmp_path / "post.db")) as db:
        found = db.execute(f'SELECT * FROM "{view}"').description
        wanted = [column[0].lower() for column in found]

    columns, _ = _rows(url, view)

    assert columns == wanted


def test_page_has_every_column_of_the_table_queue(url: str) -> None:
    """In their order, and the named functions can be called."""
    with psycopg.connect(url) as db:
        columns = [each.name for each in db.execute("SELECT * FROM email_queue").description or ()]
        known = {name for (name,) in db.execute("SELECT proname FROM pg_proc")}

    assert columns == list(generate.TABLE_QUEUE)
    assert generate.signatures().keys() <= known


def test_queries_of_the_page_run(url: str) -> None:
    """With the same result on either store."""
    [query] = [each.code for each in blocks_of(PAGE) if each.language == "sql"]

    with psycopg.connect(url) as db:
        assert db.execute(query.encode()).fetchall() == []


async def test_failed_mail_is_in_every_view(url: str) -> None:
    """Also one with a character that no Postgres text holds."""
    clock = StoreClock()
    ana = NewRecipient("ana@example.com", external_id="ana", nome="Ana")
    failure = a_failure("MAILBOX_FULL", reason="full", original_code="452")
    async with open_postgres(url, PostgresOptions(clock=clock)) as backend:
        await backend.tenants.define(tenants_named([ACME]))
        person = await accepted_recipient(
            backend, ana, to="ana@example.com", content='{"html":"<p>a\\u0000</p>"}'
        )
        job = await attempted(backend.store, Dead(DeadReason.PERMANENT_ERROR, failure))

    found = {
        view: [dict(zip(names, row, strict=True)) for row in rows]
        for view, (names, rows) in ((view, _rows(url, view)) for view in VIEWS)
    }
    [outbox], [log], [recipient], [letter] = (
        found[view] for view in ("email_outbox", "email_logs", "recipients", "dlq")
    )
    assert (outbox["id"], outbox["html"], outbox["lasterror"]) == (
        job.lease.job,
        "<p>a\ufffd</p>",
        "full",
    )
    assert (log["recipientid"], log["errorcode"], log["failedat"]) == (
        person,
        "MAILBOX_FULL",
        clock.at(),
    )
    assert (recipient["id"], recipient["nome"], recipient["deletedat"]) == (person, "Ana", None)
    assert (letter["jobid"], letter["originalcode"]) == (job.lease.job, "452")
    assert {event["emaillogid"] for event in found["email_events"]} == {job.lease.job}


QUERIES = (
    "SELECT lastFailureCode, COUNT(*) FROM dlq GROUP BY lastFailureCode ORDER BY COUNT(*) DESC;",
    "SELECT companyId, COUNT(*) FROM dlq GROUP BY companyId ORDER BY COUNT(*) DESC LIMIT 10;",
)


async def test_queries_of_scripts_run_unchanged_on_either_store(url: str, tmp_path: Path) -> None:
    """Without a search path, and without quotes around their names."""
    answers = []
    for opened in (open_postgres(url), open_sqlite(tmp_path / "post.db")):
        async with opened as backend:
            await backend.tenants.define(tenants_named([ACME]))
            await buried(backend, failure={"code": "MAILBOX_FULL"})
    with psycopg.connect(url) as db:
        answers.append([db.execute(query.encode()).fetchall() for query in QUERIES])
    with closing(sqlite3.connect(tmp_path / "post.db")) as file:
        answers.append([file.execute(query).fetchall() for query in QUERIES])

    assert answers[0] == answers[1] == [[("MAILBOX_FULL", 1)], [(ACME, 1)]]


async def test_relation_of_the_application_is_not_changed() -> None:
    """The others are shown; the one whose name was taken is shown once the name is free."""
    with shared_postgres().a_database() as url, psycopg.connect(url, autocommit=True) as db:
        db.execute("CREATE TABLE public.recipients (mine text)")
        await migrate(url)
        mine = db.execute("SELECT * FROM public.recipients").description or ()
        ours = db.execute("SELECT * FROM carteiro.recipients").description or ()

        db.execute("DROP TABLE public.recipients")
        db.execute("SELECT carteiro.show_table_queue()")

        shown = db.execute("SELECT * FROM recipients").description or ()
        db.execute("SELECT * FROM dlq, email_logs")
    assert [each.name for each in mine] == ["mine"]
    assert [each.name for each in shown] == [each.name for each in ours]
