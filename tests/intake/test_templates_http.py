"""Templates over HTTP: written, looked at, tried, and sent with."""

from typing import Any

import httpx
import pytest

from carteiro.email import restore_email
from carteiro.intake.http.templates import Preview, TemplateList, TemplateView
from carteiro.model import MessageId
from carteiro.post import Carteiro
from support.builders import ACME
from support.http import (
    ADMIN_TOKEN,
    KEY_OF_BRASA,
    a_client,
    answer_in,
    error_in,
    fields_in,
    stored,
)

OWN = "/v1/templates"
WELCOME = {
    "subject": "Bem-vinda, {{ user_data.full_name }}",
    "html": "<p>Olá, {{ user_data.full_name }}</p>",
    "text": "Olá, {{ user_data.full_name }}",
}
ANA = {"user_data": {"full_name": "Ana"}}


async def written(client: httpx.AsyncClient, path: str = OWN, **changes: Any) -> dict[str, Any]:
    """The template after it was written."""
    document = answer_in(await client.put(f"{path}/welcome", json=WELCOME | changes))
    TemplateView.model_validate(document)
    return document


@pytest.mark.parametrize(
    ("path", "key"),
    [(OWN, "ck_acme"), (f"/admin/v1/tenants/{ACME}/templates", ADMIN_TOKEN)],
)
async def test_each_change_is_a_new_version(post: Carteiro, path: str, key: str) -> None:
    """The newest is shown unless another is named; a tenant and an administrator see the same."""
    async with a_client(post, key=key) as client:
        first = await written(client, path)
        second = await written(client, path, subject="Olá")
        shown = answer_in(await client.get(f"{path}/welcome"))
        old = answer_in(await client.get(f"{path}/welcome", params={"version": 1}))
        listed = answer_in(await client.get(path))
        versions = answer_in(await client.get(f"{path}/welcome/versions"))

    TemplateList.model_validate(versions)
    assert (first["version"], second["version"]) == (1, 2)
    assert (shown, old) == (second, first)
    assert listed["items"] == [second]
    assert versions["items"] == [second, first]


async def test_a_deleted_template_is_gone(post: Carteiro) -> None:
    """It is not found any more, and cannot be deleted twice."""
    async with a_client(post) as client:
        await written(client)
        deleted = await client.delete(f"{OWN}/welcome")
        again = await client.delete(f"{OWN}/welcome")
        shown = await client.get(f"{OWN}/welcome")

    assert deleted.status_code == 204
    assert deleted.content == b""
    error_in(again, 404, "NOT_FOUND")
    error_in(shown, 404, "NOT_FOUND")


async def test_a_preview_puts_the_words_in(post: Carteiro) -> None:
    """Nested variables included; one that is missing is named."""
    async with a_client(post) as client:
        await written(client)
        path = f"{OWN}/welcome/preview"
        shown = answer_in(await client.post(path, json={"variables": ANA}))
        missing = await client.post(path, json={"variables": {}})

    Preview.model_validate(shown)
    assert shown == {
        "subject": "Bem-vinda, Ana",
        "html": "<p>Olá, Ana</p>",
        "text": "Olá, Ana",
    }
    [field] = fields_in(error_in(missing, 422, "INVALID_VALUE"))
    assert field.startswith("template.variables.user_data")


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"subject": "{{ broken"}, "subject"),
        ({"html": "{% if %}"}, "html"),
        ({"text": "nul\0"}, "text"),
        ({"retryPreset": "never"}, "retryPreset"),
        ({"colour": "blue"}, "colour"),
    ],
)
async def test_a_broken_template_is_422(
    post: Carteiro, changes: dict[str, str], field: str
) -> None:
    """It is judged when it is written, and nothing is stored."""
    async with a_client(post) as client:
        response = await client.put(f"{OWN}/welcome", json=WELCOME | changes)
        listed = answer_in(await client.get(OWN))

    assert fields_in(error_in(response, 422, "INVALID_VALUE")) == [field]
    assert listed["items"] == []


async def test_an_e_mail_may_be_a_template_with_its_words(post: Carteiro) -> None:
    """What is stored says what the template said when it was accepted."""
    email = {"to": "ana@example.com", "template": {"type": "welcome", "variables": ANA}}

    async with a_client(post) as client:
        await written(client)
        accepted = answer_in(await client.post("/v1/email/send", json=email), 202)
        await written(client, html="<p>Tchau</p>")
        shown = answer_in(await client.get(f"/v1/emails/{accepted['outboxId']}"))

    assert (shown["subject"], shown["templateType"]) == ("Bem-vinda, Ana", "welcome")
    message = await post.backend.reading.message(MessageId(accepted["outboxId"]))
    assert message is not None
    assert message.content is not None
    assert restore_email(message.content).html == "<p>Olá, Ana</p>"


@pytest.mark.parametrize(
    "template",
    [{"type": "welcome", "variables": {}}, {"type": "unknown", "variables": ANA}],
)
async def test_a_missing_word_or_template_is_422(post: Carteiro, template: dict[str, Any]) -> None:
    """By itself and in a batch; nothing is stored."""
    email = {"to": "ana@example.com", "template": template}

    async with a_client(post) as client:
        await written(client)
        single = await client.post("/v1/email/send", json=email)
        batch = answer_in(await client.post("/v1/email/batch", json={"messages": [email]}))

    error_in(single, 422, "INVALID_VALUE")
    assert [each["status"] for each in batch["results"]] == [422]
    assert await stored(post) == 0


async def test_a_key_stands_for_what_was_asked_whatever_the_template_became(
    post: Carteiro,
) -> None:
    """A retry of the same request is replayed, also after the template was changed."""
    email = {"to": "ana@example.com", "template": {"type": "welcome", "variables": ANA}}
    key = {"Idempotency-Key": "once"}

    async with a_client(post) as client:
        await written(client)
        first = answer_in(await client.post("/v1/email/send", json=email, headers=key), 202)
        await written(client, subject="Olá")
        again = answer_in(await client.post("/v1/email/send", json=email, headers=key), 202)

    assert first == again


async def test_what_was_accepted_is_replayed_after_its_template_is_gone(post: Carteiro) -> None:
    """Whoever lost the answer hears it again, single or in a batch; what was never accepted is refused."""
    email = {"to": "ana@example.com", "template": {"type": "welcome", "variables": ANA}}
    key, keyed = {"Idempotency-Key": "once"}, email | {"idempotencyKey": "once"}
    other = email | {"to": "rui@example.com", "idempotencyKey": "once"}

    async with a_client(post) as client:
        await written(client)
        first = answer_in(await client.post("/v1/email/send", json=email, headers=key), 202)
        assert (await client.delete(f"{OWN}/welcome")).is_success
        again = answer_in(await client.post("/v1/email/send", json=email, headers=key), 202)
        batch = answer_in(
            await client.post("/v1/email/batch", json={"messages": [keyed, email, other]})
        )
        unknown = await client.post(
            "/v1/email/send", json=email, headers={"Idempotency-Key": "twice"}
        )

    assert again == first
    assert [each["status"] for each in batch["results"]] == [202, 422, 422]
    assert batch["results"][0]["accepted"] == first
    error_in(unknown, 422, "INVALID_VALUE")
    assert await stored(post) == 1


async def test_a_template_is_its_tenants_own(post: Carteiro) -> None:
    """Another tenant neither sees it nor sends with it."""
    email = {"to": "ana@example.com", "template": {"type": "welcome", "variables": ANA}}

    async with a_client(post) as client, a_client(post, key=KEY_OF_BRASA) as other:
        await written(client)
        error_in(await other.get(f"{OWN}/welcome"), 404, "NOT_FOUND")
        error_in(await other.post("/v1/email/send", json=email), 422, "INVALID_VALUE")


async def test_the_e_mails_of_a_batch_share_the_work_of_their_templates(post: Carteiro) -> None:
    """Those that come when it is used up are refused, by name; in another batch they are taken."""
    heavy = {"type": "welcome", "variables": {"s": "a" * 150_000}}
    email = {"to": "ana@example.com", "template": heavy}
    source = "x" + "{% if s | upper == 1 %}{% endif %}" * 32

    async with a_client(post) as client:
        await written(client, subject="Oi", html=source, text=None)
        batch = answer_in(await client.post("/v1/email/batch", json={"messages": [email] * 14}))
        again = answer_in(await client.post("/v1/email/batch", json={"messages": [email]}))

    statuses = [each["status"] for each in batch["results"]]
    taken = statuses.count(202)
    assert statuses == [202] * taken + [422] * (14 - taken)
    assert 10 <= taken < 14
    assert fields_in(batch["results"][-1]["error"]) == ["template"]
    assert again["results"][0]["status"] == 202
