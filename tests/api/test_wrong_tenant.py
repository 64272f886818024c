"""A request with the wrong key reads nothing and changes nothing, at every endpoint.

The endpoints come from the OpenAPI document: a new one is tested without being named here.
"""

from collections.abc import AsyncIterator
from contextlib import ExitStack

import httpx
import pytest

from carteiro.api.application import create_api
from carteiro.app import Carteiro
from support.every_endpoint import SECRET, Requests, snapshot, things_of_acme
from support.http import (
    ADMIN_TOKEN,
    KEY_OF_ACME,
    KEY_OF_BRASA,
    a_client_of,
    error_in,
    opened,
)
from support.shared_servers import a_migrated_database


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.servers)])
async def post(request: pytest.FixtureRequest) -> AsyncIterator[Carteiro]:
    """An app on each store."""
    with ExitStack() as stack:
        url = "memory://"
        if request.param == "postgres":
            url = stack.enter_context(a_migrated_database())
        async with opened(url, api={"unknown_keys_per_minute": 1000}) as office:
            yield office


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
