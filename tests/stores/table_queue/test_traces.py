"""Traces of e-mails that SQL adds: the context is a setting of the transaction, as the tenant is."""

import asyncio

import pytest

from carteiro.model import MessageId
from carteiro.policy.trace_context import TRACE as FIELD
from carteiro.policy.trace_context import trace_id_of
from support.collector import CALLER, SPAN, TRACE, a_collector, settings_of
from support.library import row_of, work
from support.table_queue import TEMPLATE, WORDS, a_shared_database, an_application, an_office

pytestmark = pytest.mark.servers

ATTEMPT = "process email:send"


async def test_sql_passes_a_trace_to_the_attempts() -> None:
    """Of its transaction alone; what is not valid is ignored, and the row looks the same to the application."""
    with (
        a_shared_database() as url,
        a_collector() as collector,
        an_application(url, autocommit=False) as app,
    ):
        async with an_office(url, tracing=settings_of(collector)) as post:

            def enqueued(parent: str, state: str = "") -> str:
                app.rows("SELECT set_config('carteiro.traceparent', %s, true)", parent)
                app.rows("SELECT set_config('carteiro.tracestate', %s, true)", state)
                identity = app.enqueue()
                assert app.row(identity)["payload"] == {"user_data": {"full_name": "Ana"}}
                app.connection.commit()
                return str(identity)

            def inserted(parent: str) -> str:
                app.rows("SELECT set_config('carteiro.traceparent', %s, true)", parent)
                columns = "template_type, recipient_email, payload"
                sql = f"INSERT INTO email_queue ({columns}) VALUES (%s, %s, %s) RETURNING id"
                identity = app.value(sql, TEMPLATE, "ana@example.com", WORDS)
                app.connection.commit()
                return str(identity)

            given = await asyncio.to_thread(enqueued, CALLER, 'a="1"')
            row = await asyncio.to_thread(inserted, CALLER)
            bad = await asyncio.to_thread(enqueued, "00-" + "0" * 32 + "-" + SPAN + "-01")
            worse = await asyncio.to_thread(enqueued, "'; DROP TABLE x; --", "a=1")
            long = await asyncio.to_thread(enqueued, CALLER, "a=" + "x" * 600)
            bare = str(app.enqueue())
            app.connection.commit()
            await work(post)
            for each in (worse, bare):
                assert FIELD not in str((await row_of(post, MessageId(each))).content)

        spans = {each.attributes["messaging.message.id"]: each for each in collector.named(ATTEMPT)}
        assert {(spans[each].trace, spans[each].parent) for each in (given, row, long)} == {
            (TRACE, SPAN)
        }
        assert (spans[given].state, spans[long].state) == ('a="1"', "")
        for each in (bad, worse, bare):
            assert (spans[each].trace, spans[each].parent) == (trace_id_of(each), "")
