"""Pages of messages on SQLite: the walks of `carteiro.stores.walks`, answered by one connection."""

import sqlite3
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from carteiro.model import Cursor, MessageFilter, Page, StoredMessage
from carteiro.stores.sqlite.rows import as_json, run
from carteiro.stores.walks import Question, Reach, walk


def find_messages(  # noqa: PLR0913 - what is wanted, and how to look for it
    db: sqlite3.Connection,
    wanted: MessageFilter,
    *,
    cursor: Cursor | None,
    limit: int,
    reach: Reach = Reach(),  # noqa: B008 - a value, never changed
    has_queue: bool = True,
) -> Page[StoredMessage]:
    """The messages that match, newest first, without their contents."""
    walking = walk(wanted, cursor=cursor, limit=limit, reach=reach, has_queue=has_queue)
    try:
        question = next(walking)
        while True:
            question = walking.send(_answer(db, question))
    except StopIteration as end:
        page: Page[StoredMessage] = end.value
        return page


def _answer(db: sqlite3.Connection, question: Question) -> list[Any]:
    if question.is_walk:
        return [
            place
            for each in _single(question.parameters)
            for place in _places(db, question.operation, each)
        ]
    listed = {
        name: as_json(each) if isinstance(each, list) else each
        for name, each in question.parameters.items()
    }
    return run(db, question.operation, **listed).fetchall()


def _places(db: sqlite3.Connection, operation: str, parameters: Mapping[str, object]) -> list[Any]:
    [listed] = run(db, operation, **parameters).fetchone()
    places: list[Any] = orjson.loads(listed)
    return places


def _single(parameters: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    """The same parameters for each item of the list among them, if there is one."""
    for name, each in parameters.items():
        if isinstance(each, list):
            yield from ({**parameters, name: item} for item in each)
            return
    yield parameters
