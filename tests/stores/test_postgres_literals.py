"""Lists on Postgres: a list sent as one text comes back unchanged."""

import asyncpg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carteiro.stores.postgres.literals import few_texts, joined, numbers, once, texts
from support.set_ups import PROPERTY
from support.shared_servers import shared_postgres

pytestmark = pytest.mark.servers

_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))


async def _read_back(literal: str, kind: str) -> object:
    connection = await asyncpg.connect(shared_postgres().url())
    try:
        return await connection.fetchval(f"SELECT $1::text::{kind}[]", literal)
    finally:
        await connection.close()


@PROPERTY
@given(values=st.lists(st.none() | _TEXT, max_size=5))
async def test_texts_come_back_unchanged(values: list[str | None]) -> None:
    """Quotes, backslashes, commas, braces, the word NULL, empty ones and none at all."""
    assert await _read_back(texts(values), "text") == values


@pytest.mark.parametrize("values", [[], ["NULL", None, ""], ['{"a": "\\\\"}', "{}", "a,b", " x "]])
async def test_special_characters_come_back_unchanged(values: list[str | None]) -> None:
    """Those of the syntax itself."""
    assert await _read_back(texts(values), "text") == values


@PROPERTY
@given(values=st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=5))
async def test_numbers_come_back_unchanged(values: list[int | None]) -> None:
    """Of any size that a column holds."""
    assert await _read_back(numbers(values), "bigint") == values


async def test_booleans_come_back_unchanged() -> None:
    """They are numbers to us."""
    assert await _read_back(numbers([True, False, None]), "boolean") == [True, False, None]


@pytest.mark.parametrize("values", [[None, None], ["", None], [None, "a"]])
async def test_missing_text_is_filled_up_among_others(values: list[str | None]) -> None:
    """An empty text is one, too."""
    connection = await asyncpg.connect(shared_postgres().url())
    beside = "SELECT v FROM unnest(ARRAY[1, 2], $1::text::text[]) AS a (n, v) ORDER BY n"
    try:
        rows = await connection.fetch(beside, few_texts(values))
    finally:
        await connection.close()

    assert [row[0] for row in rows] == values


@PROPERTY
@given(values=st.lists(_TEXT.filter(bool) | st.just("a\x1fb"), min_size=1, max_size=5))
async def test_joined_texts_come_back_unchanged(values: list[str]) -> None:
    """Also those that contain the usual mark."""
    connection = await asyncpg.connect(shared_postgres().url())
    try:
        read = await connection.fetchval("SELECT string_to_array($1, $2)", *joined(values))
    finally:
        await connection.close()

    assert read == values


@pytest.mark.parametrize(
    ("values", "sent"),
    [([], []), ([1], [1]), ([1, 1, 1], [1]), ([1, 1, 2], [1, 1, 2]), ([None, None], [None])],
)
def test_common_value_is_sent_once(values: list[int | None], sent: list[int | None]) -> None:
    """The server repeats it."""
    assert once(values) == sent
