"""Any request to any endpoint with any key: no 500, and only documented answers."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_schema_conformance,
    status_code_conformance,
)
from schemathesis.core.result import Ok
from schemathesis.generation.modes import GenerationMode

from carteiro.model import ApiLimits, Tenant
from support.builders import ACME, BRASA
from support.http import ADMIN_TOKEN, KEY_OF_ACME, an_email, opened
from support.library import work
from support.serving import served

Case: TypeAlias = schemathesis.Case[Any]
Operation: TypeAlias = schemathesis.APIOperation[Any, Any, Any, Any]

FEW = settings(
    max_examples=10,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


@schemathesis.serializer("application/x-ndjson")
def as_line(_: schemathesis.SerializationContext, line: Any) -> bytes:
    """Any value, as one line."""
    return json.dumps(line).encode()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """A server in a thread, on a store with some data; its address."""
    with in_a_thread(tmp_path) as port:
        yield f"http://127.0.0.1:{port}"


@contextmanager
def in_a_thread(folder: Path) -> Iterator[int]:
    """Serve on a separate event loop: the request generator has none."""
    loop = asyncio.new_event_loop()
    stop, started = asyncio.Event(), threading.Event()
    ports: list[int] = []

    async def serve() -> None:
        unlimited = ApiLimits(None, None, None)
        async with opened(f"sqlite:///{folder}/carteiro.db") as post:
            await post.backend.tenants.define([Tenant(ACME, limits=unlimited)])
            for to in ("ok@sandbox.test", "bounce-550@sandbox.test"):
                recipient = {"externalId": to, "email": to}
                await post.send(tenant=ACME, **an_email(to=to, recipient=recipient))
            await work(post)
            async with served(post) as port:
                ports.append(port)
                started.set()
                await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    assert started.wait(30)
    try:
        yield ports[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(30)
        loop.close()


@pytest.mark.timeout(170)  # a minute, and more alongside other tests
def test_every_answer_to_a_valid_request_is_documented(server: str) -> None:
    """The things in its URL may exist or not."""
    for operation, known in operations(server):
        ask(server, operation.as_strategy(), known)


@pytest.mark.timeout(170)  # a minute, and more alongside other tests
def test_every_answer_to_an_invalid_request_is_documented(server: str) -> None:
    """Wrong types, missing or unknown parts, or another document altogether."""
    for operation, known in operations(server):
        bad = operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)
        with suppress(Unsatisfiable):  # a request without any part cannot be wrong
            ask(server, bad, known)


def ask(server: str, cases: st.SearchStrategy[Case], known: dict[str, str]) -> None:
    """Send some of the cases with each key, about half of them about existing things."""

    @FEW
    @given(case=cases, is_known=st.booleans())
    def ask_once(case: Case, is_known: bool) -> None:
        for name in case.path_parameters if is_known else ():
            case.path_parameters[name] = known.get(name, case.path_parameters[name])
        if is_known and isinstance(case.body, dict) and "to" in case.body:
            case.body["to"] = "ok@sandbox.test"  # the generator would never find a valid address
        for key in (KEY_OF_ACME, ADMIN_TOKEN):
            case.headers["X-API-Key"] = key
            case.call_and_validate(base_url=server, checks=CHECKS)

    ask_once()


def operations(server: str) -> Iterator[tuple[Operation, dict[str, str]]]:
    """Each operation of the document, with the values for its URL; destructive ones come last."""
    schema = schemathesis.openapi.from_url(f"{server}/openapi.json")
    email, recipient = things_there_are(server)
    found = [result.ok() for result in schema.get_all_operations() if isinstance(result, Ok)]
    for operation in sorted(found, key=lambda each: (ends_things(each), each.path, each.method)):
        identity = recipient if "recipients" in operation.path else email
        tenant = BRASA if operation.path.endswith(("/erase", "/disable", "{tenant}")) else ACME
        yield operation, {"id": identity, "tenant": tenant, "type": "welcome"}


def ends_things(operation: Operation) -> bool:
    """True for an operation that may delete what others ask for."""
    ending = ("/erase", "/disable", "/purge", "/redrive", "/edit", "/cancel")
    return operation.method.upper() == "DELETE" or operation.path.endswith(ending)


def things_there_are(server: str) -> tuple[str, str]:
    """The id of an e-mail that failed, and of a recipient."""
    headers = {"X-API-Key": KEY_OF_ACME}
    emails = httpx.get(f"{server}/v1/emails", headers=headers, params={"status": "FAILED"})
    recipients = httpx.get(f"{server}/v1/recipients", headers=headers)
    return emails.json()["items"][0]["outboxId"], recipients.json()["items"][0]["recipientId"]
