"""Templates over HTTP: stored, shown, previewed, and sent with."""

from typing import Any

import httpx
import pytest

from carteiro.api.templates import Preview, TemplateList, TemplateView
from carteiro.app import Carteiro
from carteiro.email.message import restore_email
from carteiro.model import MOST_TEMPLATES, MessageId
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
from support.templates import defined

OWN = "/v1/templates"
WELCOME = {
    "subject": "Bem-vinda, {{ user_data.full_name }}",
    "html": "<p>Olá, {{ user_data.full_name }}</p>",
    "text": "Olá, {{ user_data.full_name }}",
}
ANA = {"user_data": {"full_name": "Ana"}}


async def written(client: httpx.AsyncClient, path: str = OWN, **changes: Any) -> dict[str, Any]:
    """The template as stored."""
    document = answer_in(await client.put(f"{path}/welcome", json=WELCOME | changes))
    TemplateView.model_validate(document)
    return document


def summary_of(template: dict[str, Any]) -> dict[str, Any]:
    """The fields of a template in lists."""
    summary = {name: each for name, each in template.items() if name not in {"html", "text"}}
    has = {"hasHtml": template["html"] is not None, "hasText": template["text"] is not None}
    return summary | has


@pytest.mark.parametrize(
    ("path", "key"),
    [(OWN, "ck_acme"), (f"/admin/v1/tenants/{ACME}/templates", ADMIN_TOKEN)],
)
async def test_each_change_is_a_new_version(post: Carteiro, path: str, key: str) -> None:
    """The newest is shown unless another is named; tenant and administrator see the same."""
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
    assert listed["items"] == [summary_of(second)]
    assert versions["items"] == [summary_of(second), summary_of(first)]


async def test_list_shows_templates_without_content(post: Carteiro) -> None:
    """A list is short; the content is in the single template."""
    long = "a" * 100_000

    async with a_client(post) as client:
        for _ in range(3):
            await written(client, html=None, text=long)
        lists = [await client.get(path) for path in (OWN, f"{OWN}/welcome/versions")]
        shown = [
            answer_in(await client.get(f"{OWN}/welcome", params={"version": each["version"]}))
            for each in answer_in(lists[1])["items"]
        ]

    for each in lists:
        assert len(each.content) < 1000
        assert (answer_in(each)["items"][0]["hasHtml"], answer_in(each)["items"][0]["hasText"]) == (
            False,
            True,
        )
    assert [(each["version"], each["text"]) for each in shown] == [(3, long), (2, long), (1, long)]


async def test_template_over_the_storage_limit_is_refused(post: Carteiro) -> None:
    """Nothing is stored; a deleted template makes room."""
    for number in range(MOST_TEMPLATES):
        await defined(post.backend, f"type-{number}")

    async with a_client(post) as client:
        refused = await client.put(f"{OWN}/welcome", json=WELCOME)
        shown = await client.get(f"{OWN}/welcome")
        assert (await client.delete(f"{OWN}/type-7")).is_success
        await written(client)
        listed = answer_in(await client.get(OWN))

    assert str(MOST_TEMPLATES) in error_in(refused, 422, "STORAGE_LIMIT")["message"]
    error_in(shown, 404, "NOT_FOUND")
    assert len(listed["items"]) == MOST_TEMPLATES


async def test_version_of_a_deleted_template_has_its_deletion_time(post: Carteiro) -> None:
    """It can still be read by number; so can the list of versions."""
    async with a_client(post) as client:
        before = await written(client)
        assert (await client.delete(f"{OWN}/welcome")).is_success
        shown = answer_in(await client.get(f"{OWN}/welcome", params={"version": 1}))
        versions = answer_in(await client.get(f"{OWN}/welcome/versions"))

    assert before["deletedAt"] is None
    assert shown["deletedAt"] is not None
    assert shown == before | {"deletedAt": shown["deletedAt"]}
    assert versions["items"] == [summary_of(shown)]


async def test_deleted_template_is_gone(post: Carteiro) -> None:
    """It is not found, and cannot be deleted twice."""
    async with a_client(post) as client:
        await written(client)
        deleted = await client.delete(f"{OWN}/welcome")
        again = await client.delete(f"{OWN}/welcome")
        shown = await client.get(f"{OWN}/welcome")

    assert deleted.status_code == 204
    assert deleted.content == b""
    error_in(again, 404, "NOT_FOUND")
    error_in(shown, 404, "NOT_FOUND")


async def test_preview_inserts_the_variables(post: Carteiro) -> None:
    """Nested ones included; a missing one is named."""
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
        ({"html": "<p>{{ name }}</p><script>x</script>"}, "html"),
        ({"html": "{% if name %}<p onclick='{{ name }}'>{% endif %}"}, "html"),
        ({"html": "{% if name %}x{% else %}<a href='javascript:x'>{% endif %}"}, "html"),
        ({"text": "nul\0"}, "text"),
        ({"retryPreset": "never"}, "retryPreset"),
        ({"colour": "blue"}, "colour"),
    ],
)
async def test_invalid_template_is_422(post: Carteiro, changes: dict[str, str], field: str) -> None:
    """It is validated when stored, and nothing is stored."""
    async with a_client(post) as client:
        response = await client.put(f"{OWN}/welcome", json=WELCOME | changes)
        listed = answer_in(await client.get(OWN))

    assert fields_in(error_in(response, 422, "INVALID_VALUE")) == [field]
    assert listed["items"] == []


async def test_email_may_be_a_template_with_variables(post: Carteiro) -> None:
    """The message has the content of the template at acceptance."""
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
async def test_missing_variable_or_template_is_422(
    post: Carteiro, template: dict[str, Any]
) -> None:
    """Alone and in a batch; nothing is stored."""
    email = {"to": "ana@example.com", "template": template}

    async with a_client(post) as client:
        await written(client)
        single = await client.post("/v1/email/send", json=email)
        batch = answer_in(await client.post("/v1/email/batch", json={"messages": [email]}))

    error_in(single, 422, "INVALID_VALUE")
    assert [each["status"] for each in batch["results"]] == [422]
    assert await stored(post) == 0


async def test_key_stands_for_the_request_after_a_template_change(
    post: Carteiro,
) -> None:
    """A retry of the same request is replayed."""
    email = {"to": "ana@example.com", "template": {"type": "welcome", "variables": ANA}}
    key = {"Idempotency-Key": "once"}

    async with a_client(post) as client:
        await written(client)
        first = answer_in(await client.post("/v1/email/send", json=email, headers=key), 202)
        await written(client, subject="Olá")
        again = answer_in(await client.post("/v1/email/send", json=email, headers=key), 202)

    assert first == again


async def test_accepted_email_is_replayed_after_its_template_was_deleted(post: Carteiro) -> None:
    """Alone or in a batch; a request that was never accepted is refused."""
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


async def test_template_belongs_to_its_tenant(post: Carteiro) -> None:
    """Another tenant neither sees it nor sends with it."""
    email = {"to": "ana@example.com", "template": {"type": "welcome", "variables": ANA}}

    async with a_client(post) as client, a_client(post, key=KEY_OF_BRASA) as other:
        await written(client)
        error_in(await other.get(f"{OWN}/welcome"), 404, "NOT_FOUND")
        error_in(await other.post("/v1/email/send", json=email), 422, "INVALID_VALUE")


async def test_emails_of_a_batch_share_a_rendering_budget(post: Carteiro) -> None:
    """Those beyond it are refused by name; in another batch they are accepted."""
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
