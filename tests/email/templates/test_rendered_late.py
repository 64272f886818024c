"""E-mails enqueued without rendering: the worker renders them before it declares the attempt."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from carteiro.config import load
from carteiro.email.message import Email, max_retries_of
from carteiro.email.templates.rendering import render_email
from carteiro.errors import StoreUnavailable
from carteiro.jobs.kind import Pool
from carteiro.model import Deferred, NewTemplate, Outcome, State, TenantId, UnsubscribeLink
from carteiro.policy.retry import PRESETS
from carteiro.policy.suppression import key_of
from carteiro.ports import Handover, Parcel
from carteiro.providers.email_kind import email_policy, rendering
from support.builders import ACME, a_failure
from support.steps import claimed_alone
from support.unsubscribing import OFFER, token_in
from support.working import Office, an_office

CONTENT = '{"maxRetries":2,"to": "ok@sandbox.test", "template": {"type": "hello", "variables": {"name": "Ana"}}}'


@pytest.fixture
async def office() -> AsyncIterator[Office]:
    """ACME has a template with a greeting."""
    async with an_office() as made:
        template = NewTemplate(ACME, "hello", subject="Hello {{ name }}", html=None, text="Hi")
        await made.backend.templates.define(template)
        yield made


def _pool(office: Office, render: Any = None) -> Pool:
    render = render or rendering(office.backend, OFFER)
    return Pool("email", 5, (office.email_kind(render=render),))


async def test_variables_are_inserted_at_sending(office: Office) -> None:
    """The events are those of any other."""
    late = await office.post_raw(CONTENT)
    usual = await office.post()

    await office.work(_pool(office))

    [mail] = await office.backend.inbox.list(message=late)
    assert mail.subject == "Hello Ana"
    assert await office.story(late) == await office.story(usual)


async def test_link_to_unsubscribe_is_the_same_in_every_attempt(office: Office) -> None:
    """If the template offers one; the id of the message is known here."""
    new = NewTemplate(ACME, "hello", subject="Hi", text="Hi", one_click_unsubscribe=True)
    await office.backend.templates.define(new)
    late = await office.post_raw(CONTENT)
    seen: list[Email] = []

    async def deliver(parcel: Parcel, handover: Handover) -> Outcome:
        seen.append(parcel.content)
        if len(seen) == 1:
            return Deferred(a_failure())
        return await office.sandbox.deliver(parcel, handover)

    kind = office.email_kind(render=rendering(office.backend, OFFER), deliver=deliver)
    await office.work(Pool("email", 1, (kind,)))

    first, second = seen
    assert first.headers == second.headers
    link = OFFER.opened(token_in(first.headers))
    assert link == UnsubscribeLink(ACME, late, key_of(ACME, "ok@sandbox.test"))


@pytest.mark.parametrize(
    ("of", "becomes", "code", "validation"),
    [
        ('"hello"', '"unknown"', "INVALID_TEMPLATE", "TEMPLATE"),
        ('"name": "Ana"', '"other": "Ana"', "INVALID_TEMPLATE", "TEMPLATE"),
        ("ok@sandbox.test", "nobody", "INVALID_EMAIL", "RECIPIENT"),
    ],
)
async def test_email_that_cannot_be_rendered_is_a_dead_letter(
    office: Office, of: str, becomes: str, code: str, validation: str
) -> None:
    """A retry would not help."""
    late = await office.post_raw(CONTENT.replace(of, becomes))

    await office.work(_pool(office))

    row = await office.row(late)
    assert row.state is State.FAILED
    assert row.failure is not None
    assert (row.failure.code, row.failure.rule) == (code, f"validation.{validation.lower()}")
    assert await office.deliveries(late) == 0


async def test_unreachable_store_releases_the_job(office: Office) -> None:
    """It is claimed again later."""
    late = await office.post_raw(CONTENT)
    asked = 0

    async def render(email: Email, *, tenant: TenantId, **_: object) -> Email:
        nonlocal asked
        asked += 1
        if asked == 1:
            raise StoreUnavailable("the server is down")
        return await render_email(email, tenant=tenant, templates=office.backend.templates)

    await office.work(_pool(office, render))

    row = await office.row(late)
    assert (row.state, row.attempts, asked) == (State.SENT, 1, 2)


async def test_retries_follow_its_row(office: Office) -> None:
    """Not the preset of its template or its tenant."""
    policy = email_policy(load(environ={}))
    await office.post_raw(CONTENT)
    job = await claimed_alone(office.backend.store)

    found = policy(job)

    assert (found.max_attempts, found.table) == (1 + 2, PRESETS["transactional"].table)
    assert found.delay(1, 0.9) == timedelta(minutes=1)


@pytest.mark.parametrize(
    ("content", "most"),
    [(None, None), ("{}", None), ('{"to":"a"}', None), (CONTENT, 2), ('{"maxRetries":100,"', 100)],
)
def test_limit_is_read_without_the_rest(content: str | None, most: int | None) -> None:
    """Any other e-mail has none."""
    assert max_retries_of(content) == most
