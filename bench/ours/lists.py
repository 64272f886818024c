"""Lists of e-mails: cost of the first page and of the thousandth, with a given number of messages in the file."""

import argparse
import json
import os
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from uuid_utils import uuid7

from carteiro import Carteiro
from carteiro.model import (
    EMAIL,
    Cursor,
    KindName,
    MessageFilter,
    MessageId,
    NewMessage,
    NewRecipient,
    Page,
    State,
    StoredMessage,
    TenantId,
)
from figures import say
from ours.shared import TENANTS, opened, run, tenant

_LIST = 5000
_PAGE = 25
_DEEP = 1000
_SAMPLES = 100
_PEOPLE = 50_000
_STATES = (
    State.SENT,
    State.FAILED,
    State.CANCELLED,
    State.EXPIRED,
    State.ENQUEUED,
    State.SENT_ATTEMPT,
)


async def _fill(folder: Path, messages: int) -> None:
    async with opened(folder) as post:
        await post.backend.tenants.ensure([TenantId(tenant(each)) for each in range(TENANTS)])
        for first in range(0, messages, _LIST):
            await post.backend.store.accept([message(first + each) for each in range(_LIST)])
            if first % (_LIST * 40) == 0:
                say(f"ours: {first:,} of {messages:,} accepted")
    say("ours: end most of them")
    _end(folder)


def message(index: int, content: str = '{"n":1}') -> NewMessage:
    """One of the e-mails; a person has many of them."""
    person = index * 7919 % _PEOPLE  # in no order
    known = NewRecipient(f"customer{person}@example.com", external_id=f"c{person}")
    return NewMessage(
        MessageId(str(uuid7())),
        TenantId(tenant(index)),
        EMAIL,
        content,
        "bench",
        timedelta(days=1),
        to=known.email,
        subject=f"Order {index}",
        external_id=f"order-{index}",
        recipient=known if index % 7 == 0 else None,
        tags=("order", f"campaign-{index % 500}") if index % 3 else (),
    )


def _end(folder: Path) -> None:
    """Of each 1,000 leave 20 waiting, let 30 fail and 2 be cancelled; the rest was sent. The day of each is its own."""
    with closing(sqlite3.connect(folder / "carteiro.db")) as db, db:
        db.execute(
            "INSERT INTO entries (message_no, tenant, is_email, created_at, state, due_at, expires_at,"
            " finished_at, provider_message_id, timeline)"
            " SELECT no, tenant, 1, created_at, CASE WHEN no % 1000 < 948 THEN 'SENT'"
            " WHEN no % 1000 < 978 THEN 'FAILED' ELSE 'CANCELLED' END, due_at, due_at + ttl_ms,"
            " created_at + 100, iif(no % 1000 < 948, 'noop', NULL), '' FROM messages"
            " WHERE no % 1000 < 980"
        )
        db.execute("DELETE FROM unfinished WHERE message_no % 1000 < 980")
        db.execute("DELETE FROM ready WHERE message_no % 1000 < 980")
        db.execute(
            "UPDATE seats SET jobs = (SELECT count(*) FROM ready AS r WHERE r.seat = seats.no)"
        )


def wanted(messages: int) -> Iterator[tuple[str, list[MessageFilter]]]:
    """Each kind of question, asked of other tenants and with other words each time."""
    everybody = MessageFilter(kind=EMAIL)
    own = [MessageFilter(tenant=TenantId(tenant(each)), kind=EMAIL) for each in range(_SAMPLES)]
    picked = [messages // (_SAMPLES + 1) * each // 7 * 7 for each in range(_SAMPLES)]
    asked = [replace(own[at % TENANTS], external_id=f"order-{at}") for at in picked]
    people = [at * 7919 % _PEOPLE for at in picked]
    yield "all", [everybody]
    yield "FAILED", [replace(everybody, state=State.FAILED)]
    yield "of a tenant", own
    for state in _STATES:
        yield f"of a tenant, {state}", [replace(each, state=state) for each in own]
    yield (
        "of a tenant, to",
        [
            replace(own[at % TENANTS], to=f"customer{person}@example.com")
            for at, person in zip(picked, people, strict=True)
        ],
    )
    yield "of a tenant, external id", asked
    yield (
        "of a tenant, recipient",
        [
            replace(own[at % TENANTS], recipient_external_id=f"c{person}")
            for at, person in zip(picked, people, strict=True)
        ],
    )
    yield "of a tenant, tag", [replace(each, tag="order") for each in own]
    yield (
        "of a tenant, rare tag, FAILED",
        [
            replace(each, tag=f"campaign-{at % 500}", state=State.FAILED)
            for each, at in zip(own, picked, strict=True)
        ],
    )
    yield "of a tenant, tag of nobody", [replace(each, tag="none") for each in own]
    yield "kind of nobody", [MessageFilter(kind=KindName("none"))]


async def _measure(folder: Path, messages: int) -> None:
    async with opened(folder) as post:
        for name, filters in wanted(messages):
            firsts = [await timed(post, filters[each % len(filters)]) for each in range(_SAMPLES)]
            _report(f"{name}: first page", [ms for ms, _ in firsts])
            deep = await _deep(post, filters[0])
            if deep:
                _report(f"{name}: page {_DEEP:,}", deep)


async def _deep(post: Carteiro, asked: MessageFilter) -> list[float]:
    """Times of the pages around the thousandth; none if there are fewer pages."""
    took: list[float] = []
    cursor: Cursor | None = None
    for number in range(_DEEP + _SAMPLES // 2):
        ms, page = await timed(post, asked, cursor)
        if number >= _DEEP - _SAMPLES // 2:
            took.append(ms)
        cursor = page.next
        if cursor is None:
            break
    return took if len(took) == _SAMPLES else []


async def timed(
    post: Carteiro, asked: MessageFilter, cursor: Cursor | None = None
) -> tuple[float, Page[StoredMessage]]:
    """A page, and the milliseconds that it took."""
    begun = time.perf_counter()
    page = await post.backend.reading.messages(asked, cursor=cursor, limit=_PAGE)
    return (time.perf_counter() - begun) * 1000, page


def _report(name: str, took: list[float]) -> None:
    centiles = statistics.quantiles(took, n=100)
    figures = {"p50_ms": centiles[49], "p95_ms": centiles[94], "most_ms": max(took)}
    print(json.dumps({"name": name} | figures), flush=True)


def main() -> None:
    """Fill a new file, then ask."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument(
        "--folder", type=Path, help="keep the file here, and use the one that is there"
    )
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.folder or Path(temporary)
        if not (folder / "carteiro.db").exists():
            run(_fill(folder, asked.messages))
            os.sync()
        run(_measure(folder, asked.messages))


if __name__ == "__main__":
    main()
