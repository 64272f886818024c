"""The traffic while processes die: a bit of everything, chosen by a seed."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, TypeAlias
from uuid import UUID

from carteiro import Accepted
from carteiro.engine.tasks import Task
from carteiro.model import EMAIL, ClaimId, DeadFilter, MessageId, Ramp, TenantId
from end_to_end.crash.post_office import PostOffice

Heard: TypeAlias = Callable[[Sequence[MessageId]], None]

JOB = "job "  # beginning of the requester of a redrive
TENANTS = ("acme", "brasa", "cedro")
_POLL_S = 0.01
_SOON = timedelta(milliseconds=200)


def an_email(to: str, tenant: str = TENANTS[0], **fields: Any) -> dict[str, Any]:
    """An e-mail to the sandbox; ``to`` is the local part that it plays."""
    return {
        "tenant": tenant,
        "to": f"{to}@sandbox.test",
        "subject": "Bom dia",
        "html": "<p>Bom dia</p>",
        **fields,
    }


def some_of_everything(chance: Random) -> list[dict[str, Any]]:
    """E-mails with every possible end, in any order, from any tenant."""
    soon = datetime.now(UTC) + _SOON
    emails = [
        *(an_email("ok") for _ in range(5)),
        an_email("throttle-1"),
        an_email("throttle-1", delivery="at_most_once"),
        an_email("throttle-5"),  # dies, and is redriven automatically
        an_email("greylist"),
        an_email("bounce-550"),
        an_email("full-552"),
        an_email("reject"),
        an_email("lost-reply"),
        an_email("lost-reply", delivery="at_most_once"),
        an_email("random-50"),
        an_email("timeout", ttl=400),
        an_email("ok", html="<script>alert(1)</script>"),
        an_email("ok", scheduled_at=soon),
        an_email("ok", ttl=1),
        an_email("full-552", ttl=30),
        an_email("ok", delivery="at_most_once"),
    ]
    chance.shuffle(emails)
    return [email | {"tenant": chance.choice(TENANTS)} for email in emails]


async def send(post: PostOffice, emails: Sequence[dict[str, Any]], heard: Heard) -> list[MessageId]:
    """Send them, and report once the answer is there."""
    answers = await post.send_many(emails)
    ids = [answer.id for answer in answers if isinstance(answer, Accepted)]
    heard(ids)
    return ids


async def send_task(post: PostOffice, task: Task, chance: Random, heard: Heard) -> MessageId:
    """Send a task with its own mark."""
    mark = str(UUID(int=chance.getrandbits(128)))
    answer = await task.send(tenant=chance.choice(TENANTS), mark=mark)
    assert isinstance(answer, Accepted)
    heard([answer.id])
    return answer.id


async def prepare(post: PostOffice, chance: Random, heard: Heard) -> None:
    """Leave something to reap and something to expire, of kinds that the children do not run."""
    await send_task(post, post.tasks.fleeting, chance, heard)
    await send_task(post, post.tasks.unattended, chance, heard)
    claim_id = ClaimId(str(UUID(int=chance.getrandbits(128))))
    kinds = [post.tasks.unattended.kind_name]
    await post.backend.store.claim(
        claim_id=claim_id, kinds=kinds, limit=1, lease=timedelta(milliseconds=1)
    )


async def play(post: PostOffice, chance: Random, heard: Heard) -> None:
    """Send a bit of everything, cancel, redrive; return when only slow messages are unfinished."""
    await send_task(post, post.tasks.linger, chance, heard)
    ids = await send(post, some_of_everything(chance), heard)
    for task in (post.tasks.note, post.tasks.note_in_thread, post.tasks.note_once):
        ids += [await send_task(post, task, chance, heard) for _ in range(2)]
    await cancel_some(post, ids, chance)
    ids += await send(post, some_of_everything(chance), heard)
    dead = await _first_dead(post)
    await post.backend.dead_letters.redrive([dead], by="ana")
    await start_redrive(post, chance)
    while await post.backend.reading.unsettled(ids) or await post.backend.redrives.due():
        await asyncio.sleep(_POLL_S)


async def cancel_some(post: PostOffice, ids: Sequence[MessageId], chance: Random) -> None:
    """Cancel a third of the messages, of any tenant and in any state."""
    chosen = chance.sample(list(ids), k=len(ids) // 3)
    for tenant in TENANTS:
        await post.backend.store.cancel(chosen, tenant=TenantId(tenant))


async def redrive_some(post: PostOffice, chance: Random) -> None:
    """Redrive about half of the dead letters."""
    page = await post.backend.dead_letters.find(limit=20)
    ids = [letter.id for letter in page.rows]
    await post.backend.dead_letters.redrive(
        [each for each in ids if chance.random() < 0.5], by="ana"
    )


async def start_redrive(post: PostOffice, chance: Random) -> None:
    """Start a job that redrives all dead e-mails, a few first; its name is in the timelines of its messages."""
    by = f"{JOB}{chance.getrandbits(64)}"
    ramp = Ramp(canary=2, first_rate=100_000, max_rate=100_000, max_failed=1)
    await post.backend.redrives.start(DeadFilter(kind=EMAIL), by=by, ramp=ramp, total=0)


async def _first_dead(post: PostOffice) -> MessageId:
    while True:
        letters = (await post.backend.dead_letters.find(limit=1)).rows
        if letters:
            return letters[0].id
        await asyncio.sleep(_POLL_S)
