"""A request with the wrong key reads nothing and changes nothing, at every endpoint.

The endpoints come from the OpenAPI document: a new one is tested without being named here.
"""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from carteiro.api.application import create_api
from carteiro.api.docs_page import operations_of
from carteiro.app import Carteiro
from carteiro.model import DeadFilter, MessageFilter, MessageId, RecipientId
from carteiro.stores.postgres import migrate
from support.builders import ACME
from support.http import (
    ADMIN_TOKEN,
    KEY_OF_ACME,
    KEY_OF_BRASA,
    a_client,
    a_client_of,
    an_email,
    answer_in,
    error_in,
    opened,
    sent,
)
from support.library import work
from support.shared_servers import shared_postgres

SECRET = "segredo"  # part of everything of ACME
BODIES: dict[str, Any] = {  # a valid one, by the name of its document
    "Batch": {"messages": [an_email()]},
    "Changes": {"subject": "a"},
    "Email": an_email(),
    "EnqueueQuestion": {"p_template_type": "welcome", "p_recipient_email": "a@example.com"},
    "FairnessDocument": {},
    "NewKey": {},
    "NewSuppressions": {"emails": ["a@example.com"]},
    "NewTenantDocument": {},
    "PreviewQuestion": {"variables": {}},
    "PurgeQuestion": {"olderThanMs": 0},
    "RedriveQuestion": {"matching": {}},
    "TemplateDocument": {"subject": "a", "text": "b"},
    "TenantChange": {"cap": 1},
}


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.servers)])
async def post(request: pytest.FixtureRequest) -> AsyncIterator[Carteiro]:
    """An app on each store."""
    with ExitStack() as stack:
        url = "memory://"
        if request.param == "postgres":
            url = stack.enter_context(shared_postgres().a_database(migrate))
        async with opened(url, api={"unknown_keys_per_minute": 1000}) as office:
            yield office


class Requests:
    """A valid request for each operation, about the things of ACME."""

    def __init__(self, document: dict[str, Any], things: dict[str, dict[str, str]]) -> None:
        self._document = document
        self._things = things

    def under(self, *prefixes: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Method, path and options of each request below one of the prefixes."""
        for path, method, operation in operations_of(self._document):
            if path.startswith(prefixes) and operation.get("security"):
                yield method, self._address(path), self._options(operation)

    def _address(self, path: str) -> str:
        about = "recipients" if "/recipients" in path else "messages"
        return path.format(**self._things[about])

    def _options(self, operation: Mapping[str, Any]) -> dict[str, Any]:
        if needed := [
            each["name"]
            for each in operation.get("parameters", ())
            if each["in"] == "query" and each["required"]
        ]:
            return {"params": dict.fromkeys(needed, f"{SECRET}@example.com")}
        for media_type, content in operation.get("requestBody", {}).get("content", {}).items():
            headers = {"Content-Type": media_type}
            if media_type != "application/json":
                return {"content": b"\n", "headers": headers}
            return {"json": BODIES[content["schema"]["$ref"].rpartition("/")[2]]}
        return {}


async def things_of_acme(post: Carteiro) -> dict[str, dict[str, str]]:
    """One of everything, each with the secret in it; the values for URLs."""
    recipient = {"externalId": f"{SECRET}-1", "email": f"{SECRET}@example.com", "nome": SECRET}
    async with a_client(post) as client:
        dead = await sent(client, to="bounce-550@sandbox.test", subject=SECRET, tags=[SECRET])
        await work(post)
        known = await sent(
            client,
            to=recipient["email"],
            recipient=recipient,
            subject=SECRET,
            externalId=SECRET,
            scheduledAt="2199-01-01T00:00:00Z",
        )
        template = {"subject": SECRET, "text": SECRET}
        answer_in(await client.put("/v1/templates/welcome", json=template))
        suppressed = {"emails": [f"{SECRET}@example.com"]}
        answer_in(await client.put("/v1/suppressions", json=suppressed))
    [key] = await post.backend.keys.list(ACME)
    shared = {"tenant": str(ACME), "type": "welcome", "key": str(key.id)}
    return {
        "messages": shared | {"id": dead["outboxId"]},
        "recipients": shared | {"id": known["recipient"]["recipientId"]},
    }


async def snapshot(post: Carteiro, things: dict[str, dict[str, str]]) -> list[Any]:
    """Everything that ACME has."""
    ports = post.backend
    recipient = RecipientId(things["recipients"]["id"])
    page = await ports.reading.messages(MessageFilter(tenant=ACME))
    return [
        page.rows,
        [await ports.reading.events(MessageId(each.id)) for each in page.rows],
        await ports.recipients.show(recipient, tenant=ACME),
        await ports.templates.versions(ACME, "welcome"),
        (await ports.dead_letters.find(DeadFilter(tenant=ACME))).rows,
        await ports.tenants.find([ACME]),
        (await ports.suppressions.list(ACME)).rows,
        [(each.id, each.revoked_at) for each in await ports.keys.list(ACME)],
    ]


async def test_another_tenant_reads_and_changes_nothing(post: Carteiro) -> None:
    """At every path of a tenant, with ids that exist."""
    things = await things_of_acme(post)
    before = await snapshot(post, things)
    api = create_api(post)
    requests = Requests(api.openapi(), things)

    async with a_client_of(api, key=KEY_OF_BRASA) as client:
        for method, path, options in requests.under("/v1/"):
            response = await client.request(method, path, **options)
            assert SECRET not in response.text, (method, path)
            if things["messages"]["id"] in path or things["recipients"]["id"] in path:
                error_in(response, 404, "NOT_FOUND")

    assert await snapshot(post, things) == before


@pytest.mark.parametrize(
    ("key", "prefixes"),
    [
        (KEY_OF_ACME, ("/admin/v1/", "/metrics")),
        (KEY_OF_BRASA, ("/admin/v1/", "/metrics")),
        (ADMIN_TOKEN, ("/v1/",)),
        (None, ("/v1/", "/admin/v1/", "/metrics")),
        ("ck_made_up", ("/v1/", "/admin/v1/", "/metrics")),
    ],
)
async def test_wrong_kind_of_key_is_refused(
    post: Carteiro, key: str | None, prefixes: tuple[str, ...]
) -> None:
    """401 at every path, before any other check."""
    things = await things_of_acme(post)
    before = await snapshot(post, things)
    api = create_api(post)
    requests = Requests(api.openapi(), things)

    async with a_client_of(api, key=key) as client:
        for method, path, options in requests.under(*prefixes):
            error_in(await client.request(method, path, **options), 401, "UNAUTHORIZED")

    assert await snapshot(post, things) == before


@pytest.mark.parametrize(
    ("key", "prefixes"), [(KEY_OF_ACME, ("/v1/",)), (ADMIN_TOKEN, ("/admin/v1/", "/metrics"))]
)
async def test_right_key_is_accepted_everywhere(
    post: Carteiro, key: str, prefixes: tuple[str, ...]
) -> None:
    """So the requests of the tests above are valid."""
    things = await things_of_acme(post)
    api = create_api(post)
    requests = Requests(api.openapi(), things)
    asked = list(requests.under(*prefixes))
    # Destructive ones come last.
    asked.sort(key=lambda each: (each[1].endswith(("/erase", "/disable")), each[0] == "DELETE"))

    async with a_client_of(api, key=key) as client:
        for method, path, options in asked:
            response = await client.request(method, path, **options)
            assert response.status_code in expected(response, path), (method, path)


def expected(response: httpx.Response, path: str) -> set[int]:
    """The valid answers; some operations delete what others ask for."""
    took_effect_before = {409} if path.endswith(("/cancel", "/redrive", "/edit")) else set()
    is_gone = {404} if response.request.method == "DELETE" or path.endswith("/erase") else set()
    too_many = {409} if path.endswith("/keys") else set()
    return {200, 201, 202, 204} | took_effect_before | is_gone | too_many
