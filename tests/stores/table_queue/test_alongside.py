"""The table queue alongside everything else: tenants, erasing, editing, HTTP."""

from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from carteiro.api.application import create_api
from carteiro.dead_letters.redrive import revise
from carteiro.model import MessageId, RedriveAnswer, TenantId
from carteiro.stores.postgres import migrate
from support.http import a_client_of, let_in
from support.library import row_of
from support.shared_servers import shared_postgres
from support.table_queue import TEMPLATE, Application, an_application, an_office

pytestmark = pytest.mark.servers

DEFAULT = TenantId("default")


async def test_tenant_is_the_chosen_one(url: str, app: Application) -> None:
    """For Carteiro's own role; it sees all while it has chosen none."""
    async with an_office(url, "default", "acme"):
        app.enqueue()
        app.rows("SET carteiro.tenant = 'acme'")
        app.enqueue()
        of_acme = app.value("SELECT count(*) FROM email_queue")
        app.rows("RESET carteiro.tenant")

        assert of_acme == 1
        assert app.value("SELECT count(*) FROM email_queue") == 2
        tenants = app.rows("SELECT tenant FROM carteiro.messages ORDER BY no")
        assert [each["tenant"] for each in tenants] == ["default", "acme"]


async def test_tenant_that_cannot_send_is_reported(url: str, app: Application) -> None:
    """A missing one, and a disabled one."""
    async with an_office(url):
        app.rows("SET carteiro.tenant = 'nobody'")
        with pytest.raises(psycopg.errors.ForeignKeyViolation, match="nobody"):
            app.enqueue()
        app.rows("RESET carteiro.tenant")
        app.rows("UPDATE carteiro.tenants SET disabled = true")
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="disabled"):
            app.enqueue()


async def test_deleted_message_is_gone_here_too(url: str, app: Application) -> None:
    """With its message goes its row; with its content go the variables."""
    async with an_office(url) as post:
        identity = app.enqueue()
        await post.work_off()
        app.rows("UPDATE carteiro.messages SET content = NULL")
        without_words = app.row(identity)

        erased = await post.backend.tenants.erase(DEFAULT)

    assert erased is not None
    assert not erased.has_more
    assert (without_words["payload"], without_words["status"]) == (None, "sent")
    assert app.value("SELECT count(*) FROM carteiro.queue_rows") == 0


async def test_dead_row_can_be_edited(url: str, app: Application) -> None:
    """Its template is rendered then, and its limit is still its own."""
    async with an_office(url) as post:
        identity = MessageId(str(app.enqueue("nobody@sandbox")))
        app.update(UUID(identity), "max_retries = 2")
        await post.work_off()
        dead = await row_of(post, identity)

        changes = {
            "to": "ana@example.com",
            "template": {"variables": {"user_data": {"full_name": "Bea"}}},
        }
        revision = await revise(dead, changes, backend=post.backend)
        [answer] = await post.backend.dead_letters.redrive([identity], by="test", revision=revision)
        await post.work_off()

        [mail] = await post.backend.inbox.list()
    assert dead.failure is not None
    assert dead.failure.code == "INVALID_EMAIL"
    assert answer is RedriveAnswer.REDRIVEN
    assert mail.subject == "Hello Bea"
    row = app.row(UUID(identity))
    assert (row["status"], row["recipient_email"], row["max_retries"]) == (
        "sent",
        "ana@example.com",
        2,
    )


async def test_email_queue_of_the_application_is_not_changed() -> None:
    """Carteiro works alongside; ours appears once the name is free."""
    with shared_postgres().a_database() as url, an_application(url) as app:
        app.rows("CREATE TABLE public.email_queue (id uuid)")
        await migrate(url)
        app.rows("SELECT * FROM carteiro.email_queue")

        app.rows("DROP TABLE public.email_queue")
        app.rows("SELECT carteiro.show_table_queue()")
        async with an_office(url):
            identity = app.enqueue()

        assert app.row(identity)["status"] == "pending"


async def test_http_message_is_a_row_too(url: str, app: Application) -> None:
    """With its user, its variables and its limit."""
    user = uuid4()
    asked: dict[str, Any] = {
        "p_user_id": str(user),
        "p_template_type": TEMPLATE,
        "p_recipient_email": "ana@example.com",
        "p_payload": {"user_data": {"full_name": "Ana"}},
    }
    async with an_office(url) as post:
        await let_in(post, DEFAULT, "ck_default")
        async with a_client_of(create_api(post), key="ck_default") as client:
            response = await client.post("/rest/v1/rpc/enqueue_email", json=asked)
            row = app.row(UUID(response.json()))
            await post.work_off()

    assert (row["user_id"], row["payload"], row["max_retries"]) == (user, asked["p_payload"], 3)
    assert app.row(row["id"])["status"] == "sent"
