"""The twin of Resend behaves as Resend's documentation says."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from support.resend_twin import KEPT_SECONDS, ResendTwin, serving

LETTER = {"from": "a@example.com", "to": "b@example.net", "subject": "s", "text": "t"}
SAID = {"User-Agent": "test"}


class Clock:
    """A clock that is moved by hand."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
async def twin() -> AsyncIterator[ResendTwin]:
    """A fresh account, whose clock is moved by hand."""
    async with serving(ResendTwin(clock=Clock())) as running:
        yield running


async def asked(
    twin: ResendTwin,
    letter: Any = None,
    *,
    key: str | None = None,
    path: str = "/emails",
    method: str = "POST",
    headers: dict[str, str] | None = None,
) -> tuple[int, dict[str, Any]]:
    """Status and document of an answer."""
    given = {"Authorization": f"Bearer {twin.api_key}"} | SAID | (headers or {})
    if key is not None:
        given["Idempotency-Key"] = key
    async with httpx.AsyncClient(base_url=twin.url) as client:
        answer = await client.request(method, path, json=letter or LETTER, headers=given)
    return answer.status_code, answer.json()


async def name_of(twin: ResendTwin, letter: Any = None, **options: Any) -> tuple[int, str]:
    """Status and name of a refusal."""
    status, told = await asked(twin, letter, **options)
    assert told["statusCode"] == status
    return status, told["name"]


async def test_accepted_mail_has_an_id(twin: ResendTwin) -> None:
    """Each its own, unless an idempotency key repeats."""
    status, first = await asked(twin)
    _, second = await asked(twin)

    assert status == 200
    assert [first["id"], second["id"]] == [each.id for each in twin.deliveries]


async def test_request_without_a_user_agent_is_refused(twin: ResendTwin) -> None:
    """It does not even reach the API."""
    async with httpx.AsyncClient(base_url=twin.url) as client:
        del client.headers["user-agent"]
        unnamed = await client.post("/emails", json=LETTER)

    assert (unnamed.status_code, unnamed.text) == (403, "error code: 1010")
    assert await name_of(twin, headers={"Authorization": ""}) == (401, "missing_api_key")
    wrong = {"Authorization": "Bearer re_other"}
    assert await name_of(twin, headers=wrong) == (403, "invalid_api_key")
    assert twin.deliveries == []


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ({"path": "/mails"}, (404, "not_found")),
        ({"method": "PUT"}, (405, "method_not_allowed")),
        ({"key": ""}, (400, "invalid_idempotency_key")),
        ({"key": "k" * 257}, (400, "invalid_idempotency_key")),
    ],
)
async def test_malformed_request_is_refused(
    twin: ResendTwin, options: dict[str, Any], refusal: tuple[int, str]
) -> None:
    """Path, method and key are checked."""
    assert await name_of(twin, **options) == refusal


@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        ({"from": ""}, (422, "missing_required_field")),
        ({"to": []}, (422, "missing_required_field")),
        ({"subject": None}, (422, "missing_required_field")),
        ({"from": "nobody"}, (422, "invalid_from_address")),
        ({"from": "A <a@other.example>"}, (403, "validation_error")),
        ({"to": "nobody"}, (422, "validation_error")),
        ({"to": ["b@example.net"] * 51}, (422, "validation_error")),
        ({"cc": ["josé@example.net"]}, (422, "validation_error")),
        ({"text": ""}, (422, "validation_error")),
        ({"tags": [{"name": "a b", "value": "c"}]}, (422, "validation_error")),
        ({"tags": [{"name": "a", "value": "c" * 257}]}, (422, "validation_error")),
        ({"attachments": [{"filename": "a"}]}, (422, "invalid_attachment")),
        ({"attachments": [{"content": "?"}]}, (422, "invalid_attachment")),
    ],
)
async def test_malformed_mail_is_refused(
    twin: ResendTwin, changes: dict[str, Any], refusal: tuple[int, str]
) -> None:
    """The answer names the fault."""
    assert await name_of(twin, LETTER | changes) == refusal
    assert twin.deliveries == []


async def test_idempotency_key_is_known_for_a_day(twin: ResendTwin) -> None:
    """The same request gets the same answer, another is refused; then the key is forgotten."""
    clock: Any = twin.clock
    _, first = await asked(twin, key="k")
    clock.now = KEPT_SECONDS - 1
    _, again = await asked(twin, key="k")
    other = await name_of(twin, LETTER | {"text": "other"}, key="k")
    clock.now = KEPT_SECONDS
    _, late = await asked(twin, key="k")

    assert again == first
    assert other == (409, "invalid_idempotent_request")
    assert late != first
    assert twin.per_key == {"k": 2}


async def test_refused_mail_leaves_its_key_free(twin: ResendTwin) -> None:
    """Nothing was sent under it."""
    await asked(twin, LETTER | {"to": "nobody"}, key="k")

    status, _ = await asked(twin, key="k")

    assert status == 200


async def test_rate_limit_is_announced_and_enforced(twin: ResendTwin) -> None:
    """A number of requests a second; the next second is free again."""
    clock: Any = twin.clock
    clock.now = 10.0
    twin.per_second = 1

    first = await asked(twin)
    second = await name_of(twin)
    clock.now = 11.0
    third = await asked(twin)

    assert (first[0], third[0]) == (200, 200)
    assert second == (429, "rate_limit_exceeded")


async def test_quota_runs_out(twin: ResendTwin) -> None:
    """The daily one, and the monthly one."""
    twin.per_day = 0
    by_day = await name_of(twin)
    twin.per_day, twin.per_month = None, 0
    by_month = await name_of(twin)

    assert by_day == (429, "daily_quota_exceeded")
    assert by_month == (429, "monthly_quota_exceeded")
