"""The table queue as existing applications know it: ids, columns, scripts."""

import time
from datetime import timedelta
from pathlib import Path

import pytest

from carteiro.model import MessageId, made_at
from support.table_queue import Application, an_office

pytestmark = pytest.mark.servers

SNIPPETS = {
    path.stem: path.read_text("utf-8") for path in sorted(Path(__file__).parent.glob("*.sql"))
}
MINUTE = timedelta(minutes=1)


async def test_ids_have_their_time(url: str, app: Application) -> None:
    """As those of all messages: the Date of a mail and the age of a doubt come from them."""
    async with an_office(url):
        before = time.time()
        made = [made_at(MessageId(str(app.enqueue()))) for _ in range(20)]

    assert all(at is not None and abs(at - before) < MINUTE.total_seconds() for at in made)


@pytest.mark.parametrize("snippet", SNIPPETS.values(), ids=SNIPPETS.keys())
async def test_existing_scripts_run_unchanged(url: str, app: Application, snippet: str) -> None:
    """Over rows in every status."""
    async with an_office(url) as post:
        sent, failed, cancelled, pending = (app.enqueue() for _ in range(4))
        app.update(cancelled, "status = 'cancelled'")
        app.update(pending, "next_retry_at = now() + interval '1 hour'")
        for _ in range(4):
            assert app.value("SELECT mark_email_failed(%s, 'no')", failed)
        await post.work_off()

        script = snippet.replace("QUEUE_ID_HERE", str(pending))
        answers = [app.rows(statement) for statement in script.split(";") if statement.strip()]

    assert {app.row(each)["status"] for each in (sent, failed, cancelled, pending)} == {
        "sent",
        "failed",
        "cancelled",
        "pending",
    }
    assert any(answers)


def test_columns_are_stable(app: Application) -> None:
    """In their order, with their types."""
    columns = app.rows(
        "SELECT column_name, data_type FROM information_schema.columns"
        " WHERE table_schema = 'public' AND table_name = 'email_queue' ORDER BY ordinal_position"
    )

    assert [tuple(each.values()) for each in columns] == [
        ("id", "uuid"),
        ("user_id", "uuid"),
        ("template_type", "text"),
        ("recipient_email", "text"),
        ("payload", "jsonb"),
        ("status", "text"),
        ("retries", "integer"),
        ("max_retries", "integer"),
        ("last_attempt_at", "timestamp with time zone"),
        ("next_retry_at", "timestamp with time zone"),
        ("error_message", "text"),
        ("resend_id", "text"),
        ("created_at", "timestamp with time zone"),
    ]
