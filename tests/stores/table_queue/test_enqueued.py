"""Rows of the table queue are e-mails that a worker renders and sends."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import psycopg
import pytest

from carteiro.model import MessageId, TenantId
from support.library import row_of
from support.table_queue import TEMPLATE, Application, a_template, an_office

pytestmark = pytest.mark.servers

DEFAULT = TenantId("default")


async def test_row_is_rendered_and_sent_by_a_worker(url: str, app: Application) -> None:
    """SQL cannot render: it names the template and the variables."""
    user = uuid4()
    async with an_office(url) as post:
        identity = app.enqueue("Ana@Example.COM", user=user)
        before = app.row(identity)

        await post.work_off()

        [mail] = await post.backend.inbox.list()
    after = app.row(identity)
    assert before | {"next_retry_at": None, "created_at": None} == {
        "id": identity,
        "user_id": user,
        "template_type": TEMPLATE,
        "recipient_email": "Ana@example.com",
        "payload": {"user_data": {"full_name": "Ana"}},
        "status": "pending",
        "retries": 0,
        "max_retries": 3,
        "last_attempt_at": None,
        "next_retry_at": None,
        "error_message": None,
        "resend_id": None,
        "created_at": None,
    }
    assert before["next_retry_at"] == before["created_at"]
    assert (mail.to, mail.subject) == ("Ana@example.com", "Hello Ana")
    assert (after["status"], after["retries"], after["next_retry_at"]) == ("sent", 0, None)
    assert after["resend_id"] == mail.provider_id
    assert after["last_attempt_at"] is not None


async def test_insert_equals_the_function(url: str, app: Application) -> None:
    """With an id, a limit and a time of the application, if given."""
    later = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    async with an_office(url):
        [plain] = app.rows(
            "INSERT INTO email_queue (template_type, recipient_email) VALUES ('a', 'b@c.de') RETURNING *"
        )
        identity = uuid4()
        [own] = app.rows(
            "INSERT INTO email_queue (id, template_type, recipient_email, payload, max_retries, next_retry_at)"
            " VALUES (%s, 'a', 'b@c.de', '{}', 7, %s) RETURNING *",
            identity,
            later,
        )

    assert (plain["status"], plain["retries"], plain["max_retries"]) == ("pending", 0, 3)
    assert app.row(plain["id"])["payload"] == {}
    assert own == app.row(identity) | {"created_at": own["created_at"]}
    assert (own["max_retries"], own["next_retry_at"]) == (7, later)


@pytest.mark.parametrize(
    ("columns", "values"),
    [
        ("template_type", "NULL, 'b@c.de'"),
        ("template_type", "'a b', 'b@c.de'"),
        ("template_type", "'a', NULL"),
        ("template_type", "'a', 'nobody'"),
        ("payload, template_type", "'[1]', 'a', 'b@c.de'"),
        ("max_retries, template_type", "-1, 'a', 'b@c.de'"),
        ("max_retries, template_type", "101, 'a', 'b@c.de'"),
        ("status, template_type", "'sent', 'a', 'b@c.de'"),
        ("retries, template_type", "1, 'a', 'b@c.de'"),
        ("resend_id, template_type", "'x', 'a', 'b@c.de'"),
        ("next_retry_at, template_type", "'2300-01-01', 'a', 'b@c.de'"),
    ],
)
async def test_invalid_row_is_refused(
    url: str, app: Application, columns: str, values: str
) -> None:
    """The application gets the error at once."""
    async with an_office(url):
        with pytest.raises(psycopg.errors.CheckViolation):
            app.rows(f"INSERT INTO email_queue ({columns}, recipient_email) VALUES ({values})")

    assert app.value("SELECT count(*) FROM carteiro.messages") == 0


@pytest.mark.parametrize(
    ("column", "inserted"),
    [
        ("status", "'sent'"),
        ("retries", "1"),
        ("last_attempt_at", "now()"),
        ("error_message", "'x'"),
        ("resend_id", "'x'"),
        ("created_at", "now()"),
    ],
)
async def test_column_that_cannot_be_inserted_is_named(
    app: Application, column: str, inserted: str
) -> None:
    """Also where another could be."""
    with pytest.raises(psycopg.errors.CheckViolation, match=f"email_queue: {column} cannot be"):
        app.rows(
            f"INSERT INTO email_queue (template_type, recipient_email, max_retries, {column})"
            f" VALUES ('a', 'b@c.de', 5, {inserted})"
        )


async def test_id_is_unique(url: str, app: Application) -> None:
    """A repeated one is an error."""
    sql = "INSERT INTO email_queue (id, template_type, recipient_email) VALUES (%s, 'a', 'b@c.de')"
    async with an_office(url):
        identity = app.enqueue()

        with pytest.raises(psycopg.errors.UniqueViolation):
            app.rows(sql, identity)


@pytest.mark.parametrize("cause", ["no such template", "a word is missing"])
async def test_template_without_a_mail_is_a_failure(url: str, app: Application, cause: str) -> None:
    """The worker finds it, and it is permanent."""
    async with an_office(url) as post:
        if cause == "a word is missing":
            await post.backend.templates.define(a_template(DEFAULT, text="{{ missing }}"))
        else:
            await post.backend.templates.delete(DEFAULT, TEMPLATE)
        identity = app.enqueue()

        await post.work_off()

        message = await row_of(post, MessageId(str(identity)))
    assert app.row(identity)["status"] == "failed"
    assert "template" in app.row(identity)["error_message"]
    assert message.failure is not None
    assert message.failure.code == "INVALID_TEMPLATE"


async def test_default_from_of_the_tenant_is_used(url: str, app: Application) -> None:
    """As for any other e-mail without one."""
    async with an_office(url) as post:
        app.rows("UPDATE carteiro.tenants SET default_from = 'us@example.com'")

        app.enqueue()
        await post.work_off()

        [mail] = await post.backend.inbox.list()
    assert '"from":"us@example.com"' in mail.content.replace(" ", "")
