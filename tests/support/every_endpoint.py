"""A valid request for every endpoint, and a tenant with one of everything that they are about."""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from carteiro.api.docs_page import operations_of
from carteiro.app import Carteiro
from carteiro.model import (
    DeadFilter,
    FailureFilter,
    InboxFilter,
    MessageFilter,
    MessageId,
    RecipientId,
    RedriveState,
)
from carteiro.model.alerts import Finding
from support.builders import ACME
from support.http import a_client, an_email, answer_in, sent
from support.inbox import a_mail
from support.library import work
from support.redriving import put_into, started

SECRET = "segredo"  # part of everything of ACME
ALERT = "ManyDeadLetters"
BODIES: dict[str, Any] = {  # a valid one, by the name of its document
    "Acknowledgement": {},
    "Batch": {"messages": [an_email()]},
    "Changes": {"subject": "a"},
    "Email": an_email(),
    "EnqueueQuestion": {"p_template_type": "welcome", "p_recipient_email": "a@example.com"},
    "FairnessDocument": {},
    "NewKey": {},
    "NewRedrive": {},
    "NewToken": {"name": "bia", "role": "viewer"},
    "NewSuppressions": {"emails": ["a@example.com"]},
    "NewSilence": {"alert": "*", "lastsMs": 1000, "reason": "a"},
    "NewTenantDocument": {},
    "PreviewQuestion": {"variables": {}},
    "PurgeQuestion": {"olderThanMs": 0},
    "RedriveQuestion": {"matching": {}},
    "SendQuestion": {"template_type": "welcome", "recipient_email": "a@example.com"},
    "TemplateDocument": {"subject": "a", "text": "b"},
    "TenantChange": {"cap": 1},
}


class Requests:
    """A valid request for each operation, about the things of ACME."""

    def __init__(self, document: dict[str, Any], things: dict[str, dict[str, str]]) -> None:
        self._document = document
        self._things = things

    def under(self, *prefixes: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Method, path and options of each request below one of the prefixes."""
        for (method, path), address, options in self.each():
            if path.startswith(prefixes):
                yield method, address, options

    def each(self) -> Iterator[tuple[tuple[str, str], str, dict[str, Any]]]:
        """Method and path of each operation that needs a key; and address and options of its request."""
        for path, method, operation in operations_of(self._document):
            if operation.get("security"):
                yield (method, path), self._address(path), self._options(operation)

    def _address(self, path: str) -> str:
        about = next((each for each in self._things if f"/{each}" in path), "messages")
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
    many = Finding(ALERT, "", 101, 100)
    await post.backend.alerts.move([many], post.settings.alert_rules())
    [key] = await post.backend.keys.list(ACME)
    redrive = await started(post.backend, tenant=ACME, text=SECRET)
    await put_into(post.backend, redrive, RedriveState.PAUSED)
    [group] = (await post.backend.failures.list()).rows
    mail = a_mail(
        to=f"{SECRET}@example.com", subject=SECRET, content=orjson.dumps(an_email()).decode()
    )
    await post.backend.inbox.keep([mail])
    shared = {
        "tenant": str(ACME),
        "type": "welcome",
        "key": str(key.id),
        "name": ALERT,
    }
    return {
        "messages": shared | {"id": dead["outboxId"]},
        "redrives": shared | {"id": redrive.id},
        "recipients": shared | {"id": known["recipient"]["recipientId"]},
        "failures": shared | {"id": group.id},
        "inbox": shared | {"id": mail.message},
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
        (await ports.redrives.list(tenant=ACME)).rows,
        (await ports.dead_letters.find(DeadFilter(tenant=ACME))).rows,
        await ports.tenants.find([ACME]),
        (await ports.suppressions.list(ACME)).rows,
        (await ports.failures.list(FailureFilter(tenant=ACME))).rows,
        [(each.id, each.revoked_at) for each in await ports.keys.list(ACME)],
        (await ports.inbox.find(InboxFilter(tenant=ACME))).rows,
    ]
