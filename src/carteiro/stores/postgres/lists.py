"""Pages of messages on Postgres: the walks of `carteiro.stores.walks`, answered by one connection."""

from carteiro.model import Cursor, MessageFilter, Page, StoredMessage
from carteiro.stores.postgres.database import Session
from carteiro.stores.walks import Reach, walk


async def find_messages(  # noqa: PLR0913 - what is wanted, and how to look for it
    session: Session,
    wanted: MessageFilter,
    *,
    cursor: Cursor | None,
    limit: int,
    reach: Reach = Reach(),  # noqa: B008 - a value, never changed
    has_queue: bool = True,
) -> Page[StoredMessage]:
    """The messages that match, newest first, without their contents; for a transaction of its own."""
    walking = walk(wanted, cursor=cursor, limit=limit, reach=reach, has_queue=has_queue)
    try:
        question = next(walking)
        await session.fetch("by_index")
        while True:
            rows = await session.fetch(question.operation, *question.parameters.values())
            question = walking.send(rows)
    except StopIteration as end:
        page: Page[StoredMessage] = end.value
        return page
