"""Texts that no store can hold, in every place of a request: refused or not found, on every store."""

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from carteiro.api.application import create_api
from carteiro.app import Carteiro
from support.builders import ACME
from support.http import ADMIN_TOKEN, KEY_OF_ACME, a_client_of, an_email, opened
from support.library import work
from support.redis_server import RedisServer, a_redis
from support.set_ups import drop_postgres, postgres_url

pytestmark = pytest.mark.servers

UNFIT = "x\0"
EXPORT = "/admin/v1/dead-letters/export"


@pytest.fixture(scope="module")
def queue() -> Iterator[RedisServer]:
    """A server for this module alone."""
    with a_redis() as running:
        yield running


@pytest.fixture(params=["sqlite", "postgres", "redis+sqlite", "redis+postgres"])
async def post(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Carteiro]:
    """An app on each set-up, with a dead letter."""
    has_queue, _, store = request.param.rpartition("+")
    url = f"sqlite:///{tmp_path}/carteiro.db" if store == "sqlite" else None
    settings = {"queue": request.getfixturevalue("queue").url} if has_queue else {}
    async with opened(url or postgres_url(tmp_path), **settings) as office:
        await office.send(tenant=ACME, **an_email(to="bounce-550@sandbox.test"))
        await work(office)
        yield office
    if url is None:
        drop_postgres(tmp_path)


async def test_request_with_an_unfit_text_is_never_a_500(post: Carteiro) -> None:
    """In paths, queries and bodies; the answer asks for no retry."""
    api = create_api(post)
    asked = list(requests(api.openapi()))
    async with a_client_of(api, key=ADMIN_TOKEN) as admin, a_client_of(api) as tenant:
        for method, path, options in asked:
            client = admin if path.startswith(("/admin", "/metrics")) else tenant
            answer = await client.request(method, path, **options)
            assert answer.status_code < 500, (method, path, options, answer.text)
            assert is_refused_or_empty(answer), (method, path, options, answer.text)

    assert len(asked) > 60


async def test_nothing_is_found_by_an_unfit_name(post: Carteiro) -> None:
    """The same on every store."""
    paths = [("GET", ""), ("POST", "/cancel")]
    async with a_client_of(create_api(post), key=KEY_OF_ACME) as client:
        answers = [await client.request(verb, f"/v1/emails/x%00{end}") for verb, end in paths]

    assert [each.status_code for each in answers] == [404, 404]


async def test_dead_letter_with_an_unfit_name_is_not_imported(post: Carteiro) -> None:
    """It is refused like any other invalid value."""
    async with a_client_of(create_api(post), key=ADMIN_TOKEN) as admin:
        [line] = (await admin.get(EXPORT)).text.splitlines()
        for name in [name for name, told in json.loads(line).items() if isinstance(told, str)]:
            changed = json.loads(line)
            changed[name] += "\0"
            answer = await admin.post(
                EXPORT.replace("export", "import"),
                content=json.dumps(changed),
                headers={"Content-Type": "application/x-ndjson"},
            )
            assert answer.status_code < 500, (name, answer.text)
        [after] = (await admin.get(EXPORT)).text.splitlines()

    assert after == line


def is_refused_or_empty(answer: httpx.Response) -> bool:
    """True if nothing was found or done."""
    if 400 <= answer.status_code < 500:
        return True
    if answer.headers["Content-Type"] != "application/json":
        return not answer.content
    return not any(bool(told) for told in answer.json().values())


def requests(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Every endpoint, with such a text in one place at a time."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if "{" in path:
                whole = path
                for parameter in _parameters(operation, "path"):
                    whole = whole.replace(f"{{{parameter['name']}}}", "x%00")
                yield method.upper(), whole, {"json": {}} if "requestBody" in operation else {}
                continue
            for parameter in _parameters(operation, "query"):
                yield method.upper(), path, {"params": {parameter["name"]: UNFIT}}
            for name in _texts(document, operation):
                yield method.upper(), path, {"json": {name: UNFIT}}
            for body in _BODIES.get(path, ()):
                yield method.upper(), path, {"json": body}


_FILTERS = [{"matching": {name: UNFIT}} for name in ("companyId", "kind", "code", "text")]
_BODIES: dict[str, list[dict[str, Any]]] = {
    "/admin/v1/dead-letters/redrive": [*_FILTERS, {"ids": [UNFIT]}],
    "/admin/v1/dead-letters/purge": [{"olderThanMs": 0, **each} for each in _FILTERS],
    "/v1/email/send": [
        an_email(**{name: UNFIT}) for name in ("to", "subject", "externalId", "from", "replyTo")
    ]
    + [
        an_email(tags=[UNFIT]),
        an_email(recipient={"externalId": UNFIT, "email": "ana@example.com"}),
        an_email(recipient={"recipientId": UNFIT, "email": "ana@example.com"}),
        {"to": "ana@example.com", "template": {"type": UNFIT, "variables": {}}},
    ],
    "/rest/v1/rpc/enqueue_email": [
        {"p_template_type": UNFIT, "p_recipient_email": "ana@example.com", "p_payload": {}},
        {"p_template_type": "welcome_user", "p_recipient_email": UNFIT, "p_payload": {}},
    ],
}


def _parameters(operation: dict[str, Any], place: str) -> list[dict[str, Any]]:
    return [each for each in operation.get("parameters", ()) if each["in"] == place]


def _texts(document: dict[str, Any], operation: dict[str, Any]) -> list[str]:
    """The text fields of a body."""
    content = operation.get("requestBody", {}).get("content", {})
    reference = content.get("application/json", {}).get("schema", {}).get("$ref", "")
    schema = document["components"]["schemas"].get(reference.rpartition("/")[2], {})
    return [name for name, told in schema.get("properties", {}).items() if _is_text(told)]


def _is_text(told: dict[str, Any]) -> bool:
    return any(each.get("type") == "string" for each in (told, *told.get("anyOf", ())))
