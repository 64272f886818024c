"""Cost of a refusal: few errors are built for any size of request, each counts, and others have turns."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

import httpx
import pytest
from pydantic import ValidationError

from carteiro.api import reading
from carteiro.app import Carteiro
from carteiro.email.message import (
    MAX_REQUEST_BYTES,
    MOST_FAULTS,
    MOST_VALUES,
    make_email,
    read_email,
)
from carteiro.errors import InvalidMessage
from carteiro.model import ApiLimits, Tenant
from carteiro.policy.addresses import Unusual, judge_address
from carteiro.providers import feedback
from support.builders import ACME
from support.http import (
    ADMIN_TOKEN,
    KEY_OF_ACME,
    a_client,
    an_email,
    answer_in,
    error_in,
    opened,
    sent,
    stored,
)
from support.templates import defined

MOST_ERRORS = 200  # errors that the library may build for one document: more than it has fields, and far from many
SEND, BATCH = "/v1/email/send", "/v1/email/batch"
JSON = {"Content-Type": "application/json"}
UNUSUAL = "{number}@exämple{number}.com"


@cache
def many(part: str) -> str:
    """The part repeated until a request is almost full; {} is a number in it."""
    each = part.replace("{}", "%06d")
    times = (MAX_REQUEST_BYTES - 1000) // len(part.replace("{}", "000000") + ",")
    return ",".join(map(each.__mod__, range(times)) if each != part else [part] * times)


CROWDS = {
    "attachments of nothing": f'"attachments":[{many("{{}}".replace("{{}}", "[]"))}]',
    "attachments without fields": '"attachments":[' + ",".join(["{}"] * 300_000) + "]",
    "attachments, fewer of them": '"attachments":[' + ",".join(["{}"] * 40_000) + "]",
    "tags, fewer of them": '"tags":[' + ",".join(["[]"] * 40_000) + "]",
    "attachments of wrong fields": '"attachments":[' + ",".join(['{"a":1}'] * 120_000) + "]",
    "fields of one attachment": f'"attachments":[{{{many(chr(34) + "{}" + chr(34) + ":1")}}}]',
    "cc": f'"cc":[{many("1")}]',
    "bcc": '"bcc":[' + ",".join(['"a@b.co"'] * 100_000) + "]",
    "tags": f'"tags":[{many("[]")}]',
    "headers": f'"headers":{{{many(chr(34) + "{}" + chr(34) + ":1")}}}',
    "headers that are allowed": f'"headers":{{{many(chr(34) + "X-{}" + chr(34) + ":" + chr(34) * 2)}}}',
    "recipient": f'"recipient":{{{many(chr(34) + "{}" + chr(34) + ":1")}}}',
    "unknown fields": many('"{}":1'),
    "template": f'"template":{{{many(chr(34) + "{}" + chr(34) + ":1")}}}',
    "variables": '"template":{"type":"x","variables":{"a":[' + ",".join(["{}"] * 300_000) + "]}}",
    "numbers in variables": f'"template":{{"type":"x","variables":{{"a":[{many("1")}]}}}}',
}


def crowded(crowd: str) -> bytes:
    """An e-mail with very many of something."""
    says = "" if '"template"' in crowd else '"subject":"Oi","text":"Oi",'
    return f'{{"to":"ana@example.com",{says}{crowd}}}'.encode()


def errors_behind(refused: BaseException) -> int:
    """Number of errors that the library built before some were shown."""
    cause = refused.__context__
    return cause.error_count() if isinstance(cause, ValidationError) else 0


# --- number of errors ---------------------------------------------------------------------------


@pytest.mark.parametrize("crowd", CROWDS.values(), ids=CROWDS.keys())
def test_crowded_email_builds_few_errors(crowd: str) -> None:
    """Lists end at their first error, and objects that are too large are not inspected."""
    body = crowded(crowd)
    assert len(body) <= MAX_REQUEST_BYTES

    with pytest.raises(InvalidMessage) as by_request:
        read_email(body)
    with pytest.raises(InvalidMessage) as by_library:
        make_email(json.loads(body))

    for refused in (by_request.value, by_library.value):
        assert errors_behind(refused) <= MOST_ERRORS
        assert 1 <= len(refused.fields) <= MOST_FAULTS


_BAD = '"!":1,' * 20_000 + '"X-A":1'  # repeats a name
_MANY = ",".join(f'"z{number}":1' for number in range(10_000))
REPEATED = {
    "headers": f'"headers":{{{_BAD}}}',
    "unknown fields": _BAD,
    "fields of one attachment": f'"attachments":[{{{_BAD}}}]',
    "many first, few last": f'"headers":{{{_MANY}}},"headers":{{"!":1}}',
}
_NOT_A_NUMBER = '"template":{"type":"x","variables":{"x":%s}}'


@pytest.mark.parametrize("crowd", REPEATED.values(), ids=REPEATED.keys())
def test_repeated_name_is_validated_once(crowd: str) -> None:
    """Only the parts that were counted are validated: the last value of each name."""
    with pytest.raises(InvalidMessage) as refused:
        read_email(crowded(crowd))

    assert 1 <= errors_behind(refused.value) <= 5


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_crowd_with_a_number_that_json_does_not_have_is_not_validated(number: str) -> None:
    """One parser counts and refuses; nothing skips the count."""
    with pytest.raises(InvalidMessage) as refused:
        read_email(crowded(f"{_NOT_A_NUMBER % number},{_MANY}"))

    assert errors_behind(refused.value) == 0
    assert str(refused.value) == "body: is not valid JSON"


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "[{},[-1e999]]"])
async def test_variable_must_be_a_number_of_json(post: Carteiro, number: str) -> None:
    """They would be stored as null; every endpoint that accepts variables refuses them."""
    await defined(post.backend, "welcome")
    bodies = {
        SEND: f'{{"to":"ana@example.com",{_NOT_A_NUMBER % number}}}',
        "/v1/templates/welcome/preview": f'{{"variables":{{"x":{number}}}}}',
        "/rest/v1/rpc/enqueue_email": '{"p_template_type":"welcome","p_recipient_email":"ana@example.com",'
        f'"p_payload":{{"x":{number}}}}}',
    }

    async with a_client(post) as client:
        answers = [
            await client.post(path, content=each, headers=JSON) for path, each in bodies.items()
        ]

    assert {each.status_code for each in answers} <= {400, 422}
    assert await stored(post) == 0


def test_large_integer_keeps_its_digits_in_a_crowd() -> None:
    """Counting the parts changes no value."""
    digits = "123456789012345678901234567890"
    names = ",".join(f'"a{number}":1' for number in range(100))
    template = f'"template":{{"type":"x","variables":{{"x":{digits},{names}}}}}'

    email = read_email(crowded(template))

    assert email.template is not None
    assert email.template.variables["x"] == int(digits)


@pytest.mark.parametrize("part", ['"z":1', '"z" : 1', '"\\\\":"\\\\"'])
def test_very_many_names_are_not_parsed(part: str) -> None:
    """The end of the body is cut off, which only a parser would notice."""
    with pytest.raises(InvalidMessage) as refused:
        read_email(("{" + ",".join([part] * 100_000))[: MAX_REQUEST_BYTES - 1].encode())

    assert "names and texts" in str(refused.value)


def test_quotes_in_a_text_are_not_counted() -> None:
    """A page of any size may quote its attributes."""
    html = '<p class="a">' * 30_000

    assert read_email(json.dumps(an_email(html=html))).html == html


def test_shown_errors_are_bounded() -> None:
    """Where each of many attachments has two, twenty are shown."""
    bad = {"filename": "a/b", "contentType": "text/plain", "content": "no base64"}

    with pytest.raises(InvalidMessage) as refused:
        make_email(an_email(attachments=[bad] * 50))

    assert len(refused.value.fields) == MOST_FAULTS


@pytest.mark.parametrize(
    ("field", "most", "each"),
    [
        ("cc", 5, "bia@example.com"),
        ("bcc", 5, "bia@example.com"),
        ("tags", 5, "tag"),
        ("attachments", 50, {"filename": "a", "contentType": "a/b", "content": ""}),
    ],
)
def test_list_may_have_its_documented_length(field: str, most: int, each: object) -> None:
    """One more is refused, by the name of the list."""
    make_email(an_email(**{field: [each] * most}))

    with pytest.raises(InvalidMessage) as refused:
        make_email(an_email(**{field: [each] * (most + 1)}))

    assert [fault.field for fault in refused.value.fields] == [field]


@pytest.mark.parametrize(
    "variables",
    [
        {str(number): 1 for number in range(MOST_VALUES + 1)},
        {"a": [[1] * 100] * (MOST_VALUES // 100)},
        {"a": {"b": [1] * MOST_VALUES}},
    ],
    ids=["wide", "lists in a list", "below"],
)
def test_variables_have_a_bounded_number_of_values(variables: dict[str, Any]) -> None:
    """At any depth."""
    template = {"type": "welcome", "variables": variables}

    with pytest.raises(InvalidMessage) as refused:
        make_email({"to": "ana@example.com", "template": template})

    assert [each.field for each in refused.value.fields] == ["template.variables"]


def test_variables_may_be_many() -> None:
    """Up to the limit, in one list."""
    template = {"type": "welcome", "variables": {"a": [1] * (MOST_VALUES - 1)}}

    assert make_email({"to": "ana@example.com", "template": template}).template is not None


def test_stylesheet_is_not_crowded() -> None:
    """Any number of colons, commas and braces in a body is text."""
    html = "<style>" + "a{b:c,d}" * 2000 + "</style><p>Oi</p>"

    assert make_email(an_email(html=html)).html == html


@pytest.fixture
def errors_made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Number of errors that the library built for each refused document."""
    counted: list[int] = []
    for module in (reading, feedback):
        tell = module.plainly

        def count(error: ValidationError, tell: Any = tell) -> InvalidMessage:
            counted.append(error.error_count())
            said: InvalidMessage = tell(error)
            return said

        monkeypatch.setattr(module, "plainly", count)
    return counted


EMAILS = "/v1/suppressions"
_UNKNOWN = "{" + many('"{}":1') + "}"


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", EMAILS, _UNKNOWN),
        ("PUT", EMAILS, f"{{{_BAD}}}"),
        ("PUT", EMAILS, f'{{"x":NaN,{_MANY}}}'),
        ("PATCH", "/admin/v1/tenants/acme", f'{{"limits":{{{_BAD}}}}}'),
        ("PATCH", "/admin/v1/tenants/acme", f'{{"weight":NaN,{_MANY}}}'),
        ("PUT", EMAILS, f'{{"emails":[{many("1")}]}}'),
        ("PUT", EMAILS, f'{{"emails":[{many("[]")}]}}'),
        ("PUT", "/v1/templates/welcome", _UNKNOWN),
        ("POST", "/v1/templates/welcome/preview", _UNKNOWN),
        ("POST", "/v1/templates/welcome/preview", f'{{"variables":{{"a":[{many("1")}]}}}}'),
        ("POST", "/rest/v1/rpc/enqueue_email", _UNKNOWN),
        ("PUT", "/admin/v1/tenants/acme", _UNKNOWN),
        ("PATCH", "/admin/v1/tenants/acme", f'{{"limits":{_UNKNOWN}}}'),
        ("PATCH", "/admin/v1/tenants/acme", f'{{"fromDomains":[{many("1")}]}}'),
        ("PATCH", "/admin/v1/tenants/acme", f'{{"allowedNetworks":[{many("1")}]}}'),
        ("POST", "/admin/v1/tenants/acme/keys", _UNKNOWN),
        ("PUT", "/admin/v1/fairness", _UNKNOWN),
        ("POST", "/admin/v1/dead-letters/redrive", f'{{"ids":[{many("1")}]}}'),
        ("POST", "/admin/v1/dead-letters/redrive", f'{{"matching":{_UNKNOWN}}}'),
        ("POST", "/admin/v1/dead-letters/purge", f'{{"olderThanMs":1,"matching":{_UNKNOWN}}}'),
    ],
)
async def test_crowded_document_builds_few_errors(
    errors_made: list[int], method: str, path: str, body: str
) -> None:
    """Every document that the API reads is bounded before validation."""
    key = ADMIN_TOKEN if path.startswith("/admin") else KEY_OF_ACME
    async with opened("memory://") as post, a_client(post, key=key) as client:
        await defined(post.backend, "welcome")

        response = await client.request(method, path, content=body, headers=JSON)

    assert response.status_code in {400, 422}, response.text
    assert max(errors_made, default=0) <= MOST_ERRORS


# --- addresses ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "a" * 300,
        "é" * 65 + "@example.com",
        "ana@" + "é" * 250 + ".com",
        "ana@" + "\ufdfa" * 65,
        "ana@" + ".".join(["é" * 10] * 10) + ".com",
        "ana@" + "a" * 64 + ".com",
        "@example.com",
        "ana@",
        "x" * 65 + "@example.com",
    ],
)
def test_overlong_address_is_refused_by_length_alone(text: str) -> None:
    """The library, whose cost grows with the length, is not called."""
    before = Unusual.judged

    assert judge_address(text) is None
    assert Unusual.judged == before


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("ana@exämple.com", "ana@exämple.com"),
        ("joão@example.com", "joão@example.com"),
        ("ana@" + "é" * 50 + ".com", "ana@" + "é" * 50 + ".com"),
        ("é" * 40 + "@example.com", None),
    ],
)
def test_unusual_address_is_valid(text: str, normal: str | None) -> None:
    """Other scripts are addresses, within the lengths of mail."""
    judged = judge_address(text)

    assert judged == normal or (normal is None and judged == text)


# --- others have turns --------------------------------------------------------------------------


@asynccontextmanager
async def turns_of_another() -> AsyncIterator[list[int]]:
    """Number of times that another coroutine ran, while this was the only item of a list."""
    turns = [0]

    async def live() -> None:
        while True:
            turns[0] += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(live())
    try:
        yield turns
    finally:
        task.cancel()


async def _posted(client: httpx.AsyncClient, items: Iterable[object]) -> list[int]:
    response = await client.post(BATCH, json={"messages": list(items)})
    return [each["status"] for each in answer_in(response)["results"]]


@pytest.mark.parametrize(
    ("item", "status"),
    [
        (an_email(attachments=[{}] * 20), 400),
        (an_email(), 202),
        (an_email(to="nobody"), 422),
    ],
    ids=["bad shape", "good", "bad address"],
)
async def test_event_loop_runs_between_the_items_of_a_batch(item: object, status: int) -> None:
    """Validating, storing and answering a thousand items yields many times."""
    unlimited = {"per_minute": 0, "per_hour": 0, "per_day": 0}
    async with (
        opened("memory://", api=unlimited) as post,
        a_client(post) as client,
        turns_of_another() as turns,
    ):
        statuses = await _posted(client, [item] * 1000)

    assert statuses == [status] * 1000
    assert turns[0] >= 2 * 1000 // 20  # once while validating, once while answering


async def test_event_loop_runs_between_large_items(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes count as well as items. Only explicit yields are counted: during a write others run anyway."""
    given: list[float] = []
    sleep = asyncio.sleep

    async def counted(delay: float) -> None:
        given.append(delay)
        await sleep(delay)

    seen = []
    async with opened("memory://") as post, a_client(post) as client:
        monkeypatch.setattr(asyncio, "sleep", counted)
        for size in (10, 100_000):
            given.clear()
            await _posted(client, [an_email(to="nobody", text="x" * size)] * 15)
            seen.append(given.count(0))
        monkeypatch.undo()

    assert seen[1] >= seen[0] + 10


async def test_event_loop_runs_between_unusual_addresses() -> None:
    """Eleven of them in an item are enough to yield; the same holds for a list of suppressions."""
    people = iter(UNUSUAL.format(number=number) for number in range(10_000))
    items = [
        an_email(
            to=next(people),
            cc=[next(people) for _ in range(5)],
            bcc=[next(people) for _ in range(5)],
        )
        for _ in range(50)
    ]
    async with opened("memory://") as post, a_client(post) as client:
        async with turns_of_another() as for_batch:
            statuses = await _posted(client, items)
        async with turns_of_another() as for_list:
            listed = [next(people) for _ in range(500)]
            put = await client.put(EMAILS, json={"emails": listed})

    assert statuses == [202] * 50
    assert answer_in(put)["count"] == 500
    assert for_batch[0] >= 50
    assert for_list[0] >= 50


async def test_address_validation_stops_after_the_shown_errors() -> None:
    """After twenty invalid ones, the rest of a list is not validated."""
    async with opened("memory://") as post, a_client(post) as client:
        before = Unusual.judged
        response = await client.put(EMAILS, json={"emails": [f"no{n}@" + "-" for n in range(1000)]})

    assert len(error_in(response, 422, "INVALID_VALUE")["details"]) == MOST_FAULTS
    assert Unusual.judged - before <= MOST_FAULTS


async def test_event_loop_runs_between_the_items_of_the_library() -> None:
    """A thousand e-mails submitted at once are validated in slices, too."""
    async with opened("memory://") as post, turns_of_another() as turns:
        answers = await post.send_many([{"tenant": ACME, **an_email(to="nobody")}] * 1000)

    assert len(answers) == 1000
    assert turns[0] >= 1000 // 20


async def test_batch_of_too_many_parts_is_not_parsed(post: Carteiro) -> None:
    """Parsed objects would fill the memory before they are counted."""
    body = '{"messages":[{"attachments":[' + ",".join(["{}"] * 250_001) + "]}]}"

    async with a_client(post) as client:
        response = await client.post(BATCH, content=body, headers=JSON)

    assert error_in(response, 400, "MALFORMED_REQUEST")["details"][0]["field"] == "body"
    assert await stored(post) == 0


# --- a refused item counts ----------------------------------------------------------------------


async def _limited(post: Carteiro, per_minute: int) -> None:
    await post.backend.tenants.define([Tenant(ACME, limits=ApiLimits(per_minute, None, None))])


@pytest.mark.parametrize(
    "bad",
    [
        an_email(attachments=[{}]),
        an_email(to="nobody"),
        {"to": "ana@example.com", "template": {"type": "unknown"}},
        an_email(**{"from": "ana@elsewhere.example"}),
    ],
    ids=["shape", "address", "template", "from"],
)
async def test_refused_email_counts_as_one(post: Carteiro, bad: dict[str, Any]) -> None:
    """For any reason; over the rate limit it is refused as such, and nothing of it is kept."""
    own = Tenant(ACME, limits=ApiLimits(3, None, None), from_domains=("example.com",))
    await post.backend.tenants.define([own])

    async with a_client(post) as client:
        refused = [(await client.post(SEND, json=bad)).status_code for _ in range(2)]
        await sent(client)
        over = [await client.post(SEND, json=each) for each in (bad, an_email())]

    assert all(status in {400, 422} for status in refused)
    for each in over:
        error_in(each, 429, "TOO_MANY_REQUESTS")
        assert each.headers["X-RateLimit-Limit"] == "3"
    assert await stored(post) == 1


async def test_refused_items_of_a_batch_count(post: Carteiro) -> None:
    """Those over the rate limit say so, in their places."""
    await _limited(post, 4)
    good, bad, long = an_email(), an_email(to="nobody"), an_email(text="x" * MAX_REQUEST_BYTES)

    async with a_client(post) as client:
        first = await _posted(client, [bad, good, long, bad, good, bad])
        second = await _posted(client, [good, bad])

    assert first == [422, 202, 413, 429, 202, 429]
    assert second == [429, 429]


async def test_refused_row_of_the_table_queue_counts(post: Carteiro) -> None:
    """By that endpoint, too."""
    await _limited(post, 2)
    unknown = {"p_template_type": "unknown", "p_recipient_email": "ana@example.com"}
    no_address = {"p_template_type": "unknown", "p_recipient_email": "nobody"}

    async with a_client(post) as client:
        statuses = [
            (await client.post("/rest/v1/rpc/enqueue_email", json=each)).status_code
            for each in (unknown, no_address, unknown)
        ]

    assert statuses == [422, 422, 429]


async def test_nothing_is_counted_without_limits() -> None:
    """The store is not called."""
    unlimited = {"per_minute": 0, "per_hour": 0, "per_day": 0}
    async with opened("memory://", api=unlimited) as post, a_client(post) as client:
        statuses = {
            (await client.post(SEND, json=an_email(to="x"))).status_code for _ in range(200)
        }

    assert statuses == {422}
