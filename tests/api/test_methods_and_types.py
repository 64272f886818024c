"""A path names all its methods, and a document has exactly its documented types."""

from typing import Any

import pytest

from carteiro.api.application import create_api
from support.builders import ACME
from support.http import ADMIN_TOKEN, a_client, a_client_of, answer_in, error_in, fields_in, opened
from support.templates import defined

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")


def _documented(api: Any) -> dict[str, set[str]]:
    """The methods of each path."""
    paths = api.openapi()["paths"]
    return {path: {each.upper() for each in methods} for path, methods in paths.items()}


async def test_allow_header_lists_all_methods_of_a_path() -> None:
    """For each unknown method the same list: exactly the methods that are supported."""
    async with opened("memory://") as post:
        api = create_api(post)
        async with a_client_of(api, key=None) as client:
            for path, documented in _documented(api).items():
                given = path
                for part in ("tenant", "type", "id", "key"):
                    given = given.replace(f"{{{part}}}", "acme")

                answers = {each: await client.request(each, given) for each in METHODS}

                allowed = {
                    each.headers["Allow"] for each in answers.values() if "Allow" in each.headers
                }
                known = {method for method, each in answers.items() if each.status_code != 405}
                assert [set(each.split(", ")) for each in allowed] == [known], path
                assert known >= documented, path
                error_in(answers["OPTIONS"], 405, "METHOD_NOT_ALLOWED")


async def test_tenant_key_opens_no_admin_endpoint() -> None:
    """All of them: access is given where endpoints are added, not in each."""
    async with opened("memory://") as post:
        api = create_api(post)
        documented = _documented(api)
        of_administrators = [each for each in documented if each.startswith("/admin/")]
        async with a_client_of(api) as client:
            statuses = {
                (await client.request(method, path.replace("{", "").replace("}", ""))).status_code
                for path in of_administrators
                for method in documented[path]
            }

    assert len(of_administrators) > 20
    assert statuses == {401}


async def test_docs_pages_allow_their_own_methods() -> None:
    """HEAD included."""
    async with opened("memory://") as post, a_client(post) as client:
        refused = await client.request("OPTIONS", "/docs")
        answers = [(await client.request(each, "/docs")).status_code for each in ("GET", "HEAD")]

    assert (refused.status_code, refused.headers["Allow"]) == (405, "GET, HEAD")
    assert answers == [200, 200]


@pytest.mark.parametrize(
    ("method", "path", "document", "field"),
    [
        ("PATCH", "tenants/acme", {"cap": "1"}, "cap"),
        ("PATCH", "tenants/acme", {"cap": 1.0}, "cap"),
        ("PATCH", "tenants/acme", {"cap": True}, "cap"),
        ("PATCH", "tenants/acme", {"weight": "1.5"}, "weight"),
        ("PATCH", "tenants/acme", {"weight": True}, "weight"),
        ("PATCH", "tenants/acme", {"paused": 1}, "paused"),
        ("PATCH", "tenants/acme", {"paused": "yes"}, "paused"),
        ("PATCH", "tenants/acme", {"disabled": "false"}, "disabled"),
        ("PATCH", "tenants/acme", {"name": 1}, "name"),
        ("PATCH", "tenants/acme", {"limits": {"perMinute": "5"}}, "limits.perMinute"),
        ("PATCH", "tenants/acme", {"limits": {"perDay": True}}, "limits.perDay"),
        ("PATCH", "tenants/acme", {"externalIdIsKey": 0}, "externalIdIsKey"),
        ("PUT", "tenants/acme", {"ratePerSecond": "1"}, "ratePerSecond"),
        ("PUT", "tenants/acme", {"fromDomains": [1]}, "fromDomains.0"),
        ("PUT", "fairness", {"enableRoundRobin": 1}, "enableRoundRobin"),
        ("PUT", "fairness", {"maxJobsPerTenantBatch": "3"}, "maxJobsPerTenantBatch"),
        ("PUT", "fairness", {"maxJobsPerTenantBatch": True}, "maxJobsPerTenantBatch"),
        ("POST", "tenants/acme/keys", {"expiresInMs": "1000"}, "expiresInMs"),
        (
            "POST",
            "dead-letters/redrive",
            {"matching": {"isRedriven": "true"}},
            "matching.isRedriven",
        ),
        ("POST", "dead-letters/redrive", {"matching": {}, "limit": "5"}, "limit"),
        ("POST", "redrives", {"maxRatePerSecond": "5"}, "maxRatePerSecond"),
        ("POST", "redrives", {"canary": True}, "canary"),
        ("POST", "dead-letters/purge", {"olderThanMs": "1"}, "olderThanMs"),
        ("POST", "tenants/acme/templates/welcome/preview", {"version": "1"}, "version"),
        ("POST", "tenants/acme/templates/welcome/preview", {"version": True}, "version"),
    ],
)
async def test_values_are_not_converted_to_another_type(
    method: str, path: str, document: dict[str, Any], field: str
) -> None:
    """A text never becomes a number, nor a number a boolean: 422, and nothing changes."""
    async with opened("memory://") as post, a_client(post, key=ADMIN_TOKEN) as admin:
        await defined(post.backend, "welcome")
        before = await post.backend.tenants.find([ACME])

        response = await admin.request(method, f"/admin/v1/{path}", json=document)

        assert fields_in(error_in(response, 422, "INVALID_VALUE")) == [field]
        assert await post.backend.tenants.find([ACME]) == before


@pytest.mark.parametrize(
    ("method", "path", "document"),
    [
        ("PATCH", "tenants/acme", {"weight": 2, "cap": 3, "paused": True, "limits": {"perDay": 9}}),
        (
            "PUT",
            "tenants/acme",
            {"ratePerSecond": 1, "retryPreset": "gateway", "fromDomains": ["a.co"]},
        ),
        ("PUT", "fairness", {"enableRoundRobin": False}),
        (
            "POST",
            "dead-letters/redrive",
            {"matching": {"reason": "expired", "movedAfter": "2026-01-01T00:00:00Z"}},
        ),
        ("POST", "dead-letters/redrive", {"ids": ["01890a5d-ac96-774b-bcce-b302099a8057"]}),
        (
            "POST",
            "tenants/acme/templates/welcome/preview",
            {"version": 1, "variables": {"name": "1"}},
        ),
    ],
)
async def test_values_of_the_right_type_are_accepted(
    method: str, path: str, document: dict[str, Any]
) -> None:
    """Whole numbers for any number, and texts for times, names and ids."""
    async with opened("memory://") as post, a_client(post, key=ADMIN_TOKEN) as admin:
        await defined(post.backend, "welcome")

        response = await admin.request(method, f"/admin/v1/{path}", json=document)

        assert response.is_success, response.text


async def test_query_values_are_parsed_from_text() -> None:
    """Numbers and booleans in a URL can only be text."""
    async with opened("memory://") as post, a_client(post, key=ADMIN_TOKEN) as admin:
        for query in (
            {"limit": "5"},
            {"isRedriven": "true"},
            {"movedAfter": "2026-01-01T00:00:00Z"},
        ):
            answer_in(await admin.get("/admin/v1/dead-letters", params=query))
