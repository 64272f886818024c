"""Pages of messages, the same on every SQL store: walk the index that leaves least to look at, newest first.

A walk ends with the page, or after so many messages that did not match: then the page is short and says where
to go on. So a page costs the same however many messages there are, and whatever is asked for.

Nothing here runs a statement: a page is a generator that asks, and is sent the rows of each answer.
"""

from collections.abc import Generator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from carteiro.model import (
    EMAIL,
    FINISHED,
    Cursor,
    MessageFilter,
    Page,
    State,
    StoredMessage,
    value,
)
from carteiro.stores.columns import in_ms, message_of
from carteiro.stores.cursors import FAR, cursor_at, key_of

_WIDER = 4  # each step of a walk is so many times as long as the one before
_UNLUCKY = FINISHED - {State.SENT} | {State.RETRY_SCHEDULED}

_Place: TypeAlias = tuple[int, int]  # created_at and number: the order of every list
_Rows: TypeAlias = Sequence[Sequence[Any]]


@value
class Reach:
    """How far a page may look: messages that are walked past, and jobs of a queue that are looked at one by one."""

    walk: int = 3_000  # some 25 ms if every one of them lies on a page of its own
    queue: int = 3_000


_BESIDE_QUEUE = {
    "unfinished": "unfinished_messages",
    "walk_unfinished": "walk_unfinished_messages",
    "walk_attempts": "walk_unfinished_messages",
}


class Question(NamedTuple):
    """A statement with its parameters in their order.

    One that walks may have a list among them: it is asked of each of its items, and answered together.
    """

    operation: str
    parameters: Mapping[str, object]

    @property
    def is_walk(self) -> bool:
        """Whether its answer is a list of places."""
        return self.operation.startswith("walk_")

    def beside_queue(self) -> "Question":
        """The same where jobs are kept elsewhere: what is unfinished is found through the ledger, not the queue."""
        return self._replace(operation=_BESIDE_QUEUE.get(self.operation, self.operation))


Pages: TypeAlias = Generator[Question, _Rows, Page[StoredMessage]]


class _Way(NamedTuple):
    """A statement that walks, what it starts from, and how far its first step must go to be worth it."""

    operation: str
    key: Mapping[str, object]
    least: int = 0


def walk(
    wanted: MessageFilter,
    *,
    cursor: Cursor | None,
    limit: int,
    reach: Reach,
) -> Pages:
    """The messages that match, newest first, without their contents."""
    after = key_of(cursor, (FAR, 0))
    ways = yield from _ways(wanted, reach)
    step = max([limit + 1, *(way.least for way in ways)])
    found: list[Any] = []
    walked = 0
    while True:
        places = yield from _next_places(ways, wanted, after, step)
        if places:
            found += yield _matching(wanted, places, limit + 1 - len(found))
        walked += step
        if len(found) > limit:
            return Page(_messages(found[:limit]), _cursor_of(found[limit - 1]))
        if len(places) < step:
            return Page(_messages(found), None)
        if walked >= reach.walk:
            return Page(_messages(found), cursor_at(*places[-1]))
        after, step = places[-1], min(step * _WIDER, reach.walk - walked)


def _ways(  # noqa: PLR0911 - a list of ways, the first that fits is the shortest
    wanted: MessageFilter, reach: Reach
) -> Generator[Question, _Rows, list[_Way]]:
    """What to walk: several ways where several kinds are meant."""
    tenant, state = {"tenant": wanted.tenant}, wanted.state
    if wanted.external_id is not None:
        return [_Way("walk_external_id", {"external_id": wanted.external_id})]
    if wanted.to is not None:
        return [_Way("walk_to", {"to": wanted.to})]
    if (name := wanted.recipient_external_id) is not None:
        named = yield Question("recipients_named", {"external_id": name, **tenant})
        return [_Way("walk_recipient", {"recipient": [row[0] for row in named]})]
    if wanted.tag is not None:
        tagged = yield Question("tag_tenants", {"tag": wanted.tag, **tenant})
        return [_Way("walk_tag", {"tenant": [row[0] for row in tagged], "tag": wanted.tag})]
    if state is not None and state not in FINISHED:
        [[unfinished]] = yield Question("unfinished", tenant)
        if unfinished <= reach.queue:
            return [_Way("walk_unfinished", tenant, least=reach.queue + 1)]
        if state is State.SENT_ATTEMPT:
            return [_Way("walk_attempts", tenant, least=reach.queue + 1)]
    return [_Way("walk_all", {})] if wanted.tenant is None else _ways_of_tenant(wanted)


def _ways_of_tenant(wanted: MessageFilter) -> list[_Way]:
    tenant, state = {"tenant": wanted.tenant}, wanted.state
    if state is State.SENT and wanted.kind == EMAIL:
        return [_Way("walk_sent", tenant)]
    if state in _UNLUCKY:
        return [_Way("walk_unlucky", tenant)]
    emails, tasks = _Way("walk_emails", tenant), _Way("walk_tasks", tenant)
    return [emails, tasks] if wanted.kind is None else [emails if wanted.kind == EMAIL else tasks]


def _next_places(
    ways: list[_Way], wanted: MessageFilter, after: _Place, step: int
) -> Generator[Question, _Rows, list[_Place]]:
    """The next places on all ways together."""
    since = -FAR if wanted.created_after is None else in_ms(wanted.created_after)
    if wanted.created_before is not None:
        after = min(after, (in_ms(wanted.created_before), 0))
    at, no = after
    places: list[_Place] = []
    for way in ways:
        span = {"since": since, "at": at, "no": no, "limit": step}
        listed = yield Question(way.operation, {**way.key, **span})
        places += [(created_at, number) for created_at, number in listed]
    return sorted(places, reverse=True)[:step]


def _matching(wanted: MessageFilter, places: list[_Place], limit: int) -> Question:
    return Question(
        "messages",
        {
            "numbers": [number for _, number in places],
            "tenant": wanted.tenant,
            "kind": wanted.kind,
            "state": wanted.state,
            "to": wanted.to,
            "external_id": wanted.external_id,
            "recipient_external_id": wanted.recipient_external_id,
            "tag": wanted.tag,
            "limit": limit,
        },
    )


def _messages(rows: list[Any]) -> list[StoredMessage]:
    return [message_of(row[2:]) for row in rows]


def _cursor_of(row: Any) -> Cursor:  # noqa: ANN401 - a row of any statement
    return cursor_at(row[0], row[1])
