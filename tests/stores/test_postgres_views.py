"""The classic views on Postgres: the names that SQLite's have, and what people stored."""

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
from support.clock import StoreClock
from support.pages import blocks_of
from support.postgres_server import OWNERS
from support.shared_servers import shared_postgres
from support.steps import accepted_recipient, attempted

PAGE = "docs/reference/sql.md"
VIEWS = ("email_outbox", "email_logs", "email_events", "recipients", "dlq")


@pytest.fixture(params=OWNERS)
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """A database with the schema and nothing in it, whoever owns it."""
    with shared_postgres().a_database(migrate, owner=request.param) as made:
        yield made


def _rows(url: str, view: str) -> tuple[list[str], list[tuple[object, ...]]]:
    with psycopg.connect(url) as db:
        cursor = db.execute(SQL("SELECT * FROM carteiro.{}").format(Identifier(view)))
        return [column.name for column in cursor.description or ()], cursor.fetchall()


@pytest.mark.parametrize("view", VIEWS)
async def test_a_query_finds_the_same_columns_as_on_sqlite(
    url: str, tmp_path: Path, view: str
) -> None:
    """In the same order, in the same case."""
    async with open_sqlite(tmp_path / "post.db"):
        pass
    with closing(sqlite3.connect(tmp_path / "post.db")) as db:
        wanted = [column[0] for column in db.execute(f'SELECT * FROM "{view}"').description]

    columns, _ = _rows(url, view)

    assert columns == wanted


def test_the_page_has_every_column_of_the_table_queue(url: str) -> None:
    """In their order, and the functions that the page names are there to be called."""
    with psycopg.connect(url) as db:
        columns = [each.name for each in db.execute("SELECT * FROM email_queue").description or ()]
        known = {name for (name,) in db.execute("SELECT proname FROM pg_proc")}

    assert columns == list(generate.TABLE_QUEUE)
    assert generate.signatures().keys() <= known


def test_the_queries_of_the_page_are_answered(url: str) -> None:
    """Whoever pastes one gets an answer."""
    [query] = [each.code for each in blocks_of(PAGE) if each.language == "postgresql"]

    with psycopg.connect(url) as db:
        assert db.execute(query.encode()).fetchall() == []


async def test_a_failed_mail_is_in_every_view(url: str) -> None:
    """Also one whose words hold a character that Postgres has in no text."""
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
    assert (outbox["id"], outbox["html"], outbox["lastError"]) == (
        job.lease.job,
        "<p>a\ufffd</p>",
        "full",
    )
    assert (log["recipientId"], log["errorCode"], log["failedAt"]) == (
        person,
        "MAILBOX_FULL",
        clock.at(),
    )
    assert (recipient["id"], recipient["nome"], recipient["deletedAt"]) == (person, "Ana", None)
    assert (letter["jobId"], letter["originalCode"]) == (job.lease.job, "452")
    assert {event["emailLogId"] for event in found["email_events"]} == {job.lease.job}
