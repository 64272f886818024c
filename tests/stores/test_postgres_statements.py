"""Query plans on Postgres: every statement, with 100,000 rows in every table that grows.

The planner has the statistics of a regular autovacuum; `test_postgres_plans` covers the time before. A
new statement is checked as soon as its file is there. Its first lines name its parameters.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import asyncpg
import pytest

from carteiro.model import EMAIL, MessageFilter, State, TenantId
from carteiro.stores.postgres import migrate
from carteiro.stores.postgres.database import Session, sql
from carteiro.stores.sql.lists import find_messages
from support.crowded_postgres import GROWING, crowd, operations, parameters
from support.shared_servers import shared_postgres

pytestmark = pytest.mark.servers

MOST_ROWS = 10_000  # that are looked at, for lists of 1,000

_CALLS = "calls a function: `test_postgres_plans` counts what it reads"
_CAPPED = "counts dead letters, whose number is limited by a setting"
_COUNTS = "counts the ledger, for people; no gauge asks"
_NO_PLAN = "has no plan: it defines, locks or rewrites tables"
_ONCE_A_MOVE = "a move reads everything once"
_ONCE_A_TENANT = "the last step of erasing a tenant, when its messages are gone"
_OWN = "counts a tenant's own records, as far as storage.suppressions allows, before more are added"
_REBUILDS = "makes the queue anew from the ledger"
_SHORT = "asked only when a count that stops early says that these are few"
EXCEPTIONS = {
    "clear_jobs": _REBUILDS,
    "dead_letters_group": _CAPPED,
    "dead_letters_group_of_tenant": _CAPPED,
    "dead_letters_new": _CAPPED,
    "dead_letters_shares": _CAPPED,
    "dead_letters_sizes": _CAPPED,
    "erase_tenant": _ONCE_A_TENANT,
    "move_counts": _ONCE_A_MOVE,
    "move_since": _ONCE_A_MOVE,
    "rebuild_ring": _REBUILDS,
    "restore_jobs": _REBUILDS,
    "states": _COUNTS,
    "suppressions_count": _OWN,
    "states_of_tenant": _COUNTS,
    "walk_unfinished": _SHORT,
    "walk_unfinished_messages": _SHORT,
}
UNPLANNED = {
    "accept": _CALLS,
    "compact": _NO_PLAN,
    "declare_first": _CALLS,
    "move_clear": _NO_PLAN,
    "move_empty": _NO_PLAN,
    "move_fence": _NO_PLAN,
    "move_unfence": _NO_PLAN,
    "recipients_meet": _CALLS,
    "requests_apply": _CALLS,
    "save": _CALLS,
    "settle_sent": _CALLS,
}
# The code turns scans off before these.
BY_INDEX = re.compile(
    r"cursor_|depths$|due$|erase_|failure_counts_|forget_messages$|messages$|prune_(contents|find|free|hold)$"
    r"|recipients_named$|unfinished(_messages)?$|walk_|.*_tenants$"
)
_EXPLAINED = """
LOAD 'auto_explain';
SET auto_explain.log_min_duration = 0; SET auto_explain.log_analyze = on; SET auto_explain.log_timing = off;
SET auto_explain.log_nested_statements = on; SET auto_explain.log_format = json; SET auto_explain.log_level = notice;
SET client_min_messages = notice;
"""


class Explained:
    """A connection that reports the plan of each statement, including those inside functions."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.plans: list[dict[str, Any]] = []

    async def begin(self) -> None:
        """From here on."""
        self.connection.add_log_listener(self._hear)
        await self.connection.execute(_EXPLAINED)
        self.plans.clear()

    async def end(self) -> None:
        """Wait for the last: a plan is reported when its portal is closed, by the next statement."""
        await self.connection.execute("SET client_min_messages = notice")
        assert self.plans

    def _hear(self, _: Any, message: Any) -> None:
        found = re.search(r"plan:\n(\{.*)", str(message.message), re.DOTALL)
        if found:
            self.plans.append(json.loads(found[1])["Plan"])

    def scans(self) -> Iterator[tuple[str, str, float]]:
        """Each scan of a table that grows: its type, its table, and the number of rows."""
        for plan in self.plans:
            for node in _nodes(plan):
                table = node.get("Relation Name", "")
                if node["Node Type"].endswith("Scan") and table in GROWING and node["Actual Loops"]:
                    seen = (
                        "Actual Rows",
                        "Rows Removed by Filter",
                        "Rows Removed by Index Recheck",
                    )
                    rows = sum(node.get(each, 0) for each in seen) * node["Actual Loops"]
                    yield node["Node Type"], table, rows

    def rows(self) -> float:
        """Number of rows read."""
        return sum(rows for _, _, rows in self.scans())

    def scanned(self) -> set[str]:
        """The tables that were scanned sequentially."""
        return {table for node, table, _ in self.scans() if node == "Seq Scan"}


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for each in plan.get("Plans", ()):
        yield from _nodes(each)


@pytest.fixture(scope="module")
def full_url() -> Iterator[str]:
    """A database with 100,000 rows."""
    with shared_postgres().a_database(migrate) as url:

        async def fill() -> None:
            connection = await asyncpg.connect(url)
            await crowd(connection)
            await connection.execute("ANALYZE")
            await connection.close()

        asyncio.run(fill())
        yield url


@pytest.fixture
async def full(full_url: str) -> AsyncIterator[Explained]:
    """The database, for queries; no write stays."""
    connection = await asyncpg.connect(full_url)
    transaction = connection.transaction()
    await transaction.start()
    yield Explained(connection)
    await transaction.rollback()
    await connection.close()


async def _ask(full: Explained, operation: str) -> None:
    statement = sql(operation)
    if BY_INDEX.match(operation):
        await full.connection.execute(sql("by_index"))
    prepared = await full.connection.prepare(statement)
    types = [re.sub(r"^_(\w+)$", r"\1[]", each.name) for each in prepared.get_parameters()]
    given = parameters(operation, types)
    if operation.startswith("walk_"):  # along the messages of one tenant
        given = [each[:1] if isinstance(each, list) else each for each in given]
    await full.begin()
    try:
        await prepared.fetch(*given)
    except (
        asyncpg.IntegrityConstraintViolationError
    ):  # adds a row that there is already: adding needs no plan
        assert "INSERT INTO" in statement
    else:
        await full.end()


@pytest.mark.parametrize(
    "operation", [each for each in operations() if each not in EXCEPTIONS | UNPLANNED]
)
async def test_statement_never_scans_a_growing_table(full: Explained, operation: str) -> None:
    """With arrays of 1,000: no scan, and no join that reads the same rows repeatedly."""
    await _ask(full, operation)

    assert full.scanned() == set()
    assert full.rows() <= MOST_ROWS


@pytest.mark.parametrize(
    "operation",
    [each for each in operations() if each.startswith(("dead_letters_find", "dead_letters_group"))],
)
async def test_filter_of_dead_letters_is_in_the_plan(full: Explained, operation: str) -> None:
    """A call of the function for each row takes ten times as long."""
    await _ask(full, operation)

    filters = [node.get("Filter", "") for plan in full.plans for node in _nodes(plan)]
    assert any(filters)
    assert [each for each in filters if "is_wanted" in each] == []


@pytest.mark.parametrize("operation", sorted(EXCEPTIONS))
async def test_every_exception_is_needed(full: Explained, operation: str) -> None:
    """The list names existing statements that need it."""
    await _ask(full, operation)

    assert full.scanned() or full.rows() > MOST_ROWS


@pytest.mark.parametrize("operation", sorted(UNPLANNED))
def test_every_statement_without_a_plan_exists(operation: str) -> None:
    assert operation in operations()


# --- one tenant's list costs nothing for the rows of others ------------------------------------

TINY = TenantId("tiny")
FILTERS: list[dict[str, Any]] = [
    {},
    {"kind": EMAIL},
    {"to": "ana@example.com"},
    {"external_id": "name-1"},
    {"provider_id": "name-1"},
    {"to": "ana@example.com", "state": State.CANCELLED},
    {"recipient_external_id": "name-1"},
    {"tag": "tag-1"},
    *({"state": state} for state in State),
]
_OF_TINY = 40  # rows: three messages in several tables, twice for three pages


@pytest.mark.parametrize("fields", FILTERS, ids=str)
@pytest.mark.parametrize("has_queue", [True, False], ids=["queue", "ledger"])
async def test_list_of_messages_reads_rows_of_its_tenant_alone(
    full: Explained, fields: dict[str, Any], *, has_queue: bool
) -> None:
    """Three messages, under names that 100,000 of others have: no tenant can measure the volume of others."""
    await full.begin()
    session = Session(full.connection)
    await session.fetch("by_index")
    cursor, listed = None, 0
    while True:
        page = await find_messages(
            session,
            MessageFilter(tenant=TINY, **fields),
            cursor=cursor,
            limit=1,
            has_queue=has_queue,
        )
        listed += len(page.rows)
        cursor = page.next
        if cursor is None:
            break
    await full.end()

    assert listed <= 3
    assert full.rows() <= _OF_TINY
