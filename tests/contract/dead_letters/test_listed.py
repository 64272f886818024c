"""Dead letters, listed: pages follow each other without gaps or duplicates; every part of a filter counts."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carteiro.errors import BadCursor
from carteiro.model import (
    EMAIL,
    Category,
    Cursor,
    DeadFilter,
    DeadGroup,
    DeadReason,
    MessageId,
    Revision,
    TenantId,
)
from carteiro.ports import Backend
from carteiro.ports.dead_letters import GroupBy
from support.builders import ACME, BRASA, TASK, dead, tenants_named
from support.burying import buried, found
from support.clock import MILLISECOND, StoreClock
from support.set_ups import PROPERTY, SetUp
from support.steps import attempted

SECOND = timedelta(seconds=1)
GREY = {"code": "451", "category": Category.TRANSIENT_ERROR, "reason": "Greylisted, come BACK"}


async def _pages(backend: Backend, limit: int, **wanted: Any) -> list[list[MessageId]]:
    pages: list[list[MessageId]] = []
    cursor: Cursor | None = None
    while True:
        page = await backend.dead_letters.find(DeadFilter(**wanted), cursor=cursor, limit=limit)
        pages.append([letter.id for letter in page.rows])
        cursor = page.next
        if cursor is None:
            return pages


async def test_pages_follow_each_other(backend: Backend, clock: StoreClock) -> None:
    """Newest first; those of one millisecond by id; the last page has no cursor."""
    ids = []
    for number in range(7):
        ids.append(await buried(backend))
        if number % 3 == 2:
            clock.advance(SECOND)

    newest_first = ids[::-1]

    assert await _pages(backend, 3) == [newest_first[:3], newest_first[3:6], newest_first[6:]]
    assert await _pages(backend, 7) == [newest_first]
    assert await _pages(backend, 100) == [newest_first]


async def test_contents_are_left_out_if_nobody_needs_them(backend: Backend) -> None:
    """A page of a thousand may have a gigabyte of them; all else is the same."""
    message = await buried(backend, content='{"html":"<p>Olá</p>"}')
    whole = await backend.dead_letters.show(message)
    assert whole is not None

    assert (await backend.dead_letters.find()).rows == [whole]
    assert whole.content
    page = await backend.dead_letters.find(is_whole=False)
    assert page.rows == [replace(whole, content="")]


async def test_empty_index_is_one_empty_page(backend: Backend) -> None:
    """Without a cursor."""
    assert await _pages(backend, 10) == [[]]


async def test_new_death_moves_no_page(backend: Backend, clock: StoreClock) -> None:
    """A newer entry belongs before the first page, so nothing is seen twice and nothing is missed."""
    first = await buried(backend)
    clock.advance(SECOND)
    second = await buried(backend)
    page = await backend.dead_letters.find(limit=1)
    clock.advance(SECOND)
    await buried(backend)

    rest = await backend.dead_letters.find(cursor=page.next)

    assert [letter.id for letter in page.rows] == [second]
    assert [letter.id for letter in rest.rows] == [first]


async def test_a_made_up_cursor_is_refused(backend: Backend) -> None:
    """Better an error than a page from anywhere."""
    for cursor in ("", "no cursor", "bm8", "WzFd", "WyJhIiwgMV0"):
        with pytest.raises(BadCursor):
            await backend.dead_letters.find(cursor=Cursor(cursor))


async def test_every_part_of_a_filter_counts(backend: Backend, clock: StoreClock) -> None:
    """Each part alone finds its matches among any others."""
    hard = await buried(backend, to="rui@example.com")
    clock.advance(SECOND)
    grey = await buried(backend, BRASA, reason=DeadReason.MAX_ATTEMPTS_EXCEEDED, failure=GREY)
    clock.advance(SECOND)
    task = await buried(backend, kind=TASK, to=None)
    await backend.dead_letters.redrive([task], by="ana")

    assert await found(backend) == [task, grey, hard]
    assert await found(backend, tenant=ACME) == [task, hard]
    assert await found(backend, kind=EMAIL) == [grey, hard]
    assert await found(backend, reason=DeadReason.MAX_ATTEMPTS_EXCEEDED) == [grey]
    assert await found(backend, code="550") == [task, hard]
    assert await found(backend, category=Category.TRANSIENT_ERROR) == [grey]
    assert await found(backend, is_redriven=True) == [task]
    assert await found(backend, is_redriven=False) == [grey, hard]
    assert await found(backend, tenant=TenantId("nobody")) == []


async def test_one_tenant_can_be_left_out(backend: Backend) -> None:
    """Of every list and every group of all tenants."""
    letter = await buried(backend)
    await buried(backend, BRASA)
    traits = {"code": "550", "reason": DeadReason.PERMANENT_ERROR, "group": await _group(backend)}
    filters: list[dict[str, Any]] = [{}, *({name: each} for name, each in traits.items())]

    for wanted in filters:
        assert await found(backend, without=BRASA, **wanted) == [letter], wanted
        asked = DeadFilter(without=TenantId(BRASA), **wanted)
        assert [each.count for each in await backend.dead_letters.group("code", asked)] == [1]


async def _group(backend: Backend) -> str:
    [group] = await backend.dead_letters.group("group")
    return group.key


async def test_parts_of_a_filter_narrow_together(backend: Backend) -> None:
    """A match fulfils all parts, whichever index is used."""
    both = await buried(backend, failure=GREY)
    await buried(backend, BRASA, failure=GREY)
    await buried(backend)

    assert await found(backend, tenant=ACME, code="451") == [both]
    assert await found(backend, code="451", reason=DeadReason.IN_DOUBT) == []
    assert await found(backend, reason=DeadReason.PERMANENT_ERROR, tenant=ACME, text="grey") == [
        both
    ]
    assert await found(backend, tenant=ACME, reason=DeadReason.IN_DOUBT) == []


async def test_text_is_looked_for_in_code_reason_and_address(backend: Backend) -> None:
    """Part of a word is enough, and the case of its letters does not matter."""
    wanted = await buried(
        backend, to="Rui@example.com", failure=GREY | {"reason": "Greylisted: atenção, come BACK"}
    )

    texts = ("451", "greyLISTED", "back", "RUI@", "@example.com", "ção", "", "rui@example.com")
    for text in texts:
        assert await found(backend, text=text) == [wanted], text


async def test_texts_of_an_edited_letter_are_the_new_ones(backend: Backend) -> None:
    """Of one that was put back, those that it has."""
    message = await buried(backend, to="ana@example.com", failure=GREY | {"reason": "come BACK"})
    revision = Revision("{}", "Rui@example.com", "Novo")
    await backend.dead_letters.redrive([message], by="ana", revision=revision)
    texts = ("rui@", "ana@", "451", "back")
    edited = {text: await found(backend, text=text) for text in texts}
    await attempted(backend.store, dead())
    [letter] = (await backend.dead_letters.find()).rows
    again = {text: await found(backend, text=text) for text in texts}
    await backend.dead_letters.drop([message])
    restored = await backend.dead_letters.restore([letter])

    assert edited == {"rui@": [message], "ana@": [], "451": [message], "back": [message]}
    assert again == {"rui@": [message], "ana@": [], "451": [], "back": []}
    assert (restored, await found(backend, text="rui@")) == (1, [message])
    assert await found(backend, text=dead().failure.reason) == [message]


async def test_text_that_is_nowhere_finds_nothing(backend: Backend) -> None:
    """No character is a wildcard, and no other field is searched."""
    await buried(backend, to="rui@example.com", failure=GREY)

    for text in ("452", "grey listed", "ana@", "%", "_", "permanent"):
        assert await found(backend, text=text) == [], text


async def test_time_is_a_half_open_range(backend: Backend, clock: StoreClock) -> None:
    """``moved_after`` itself counts, ``moved_before`` does not: ranges can be put next to each other."""
    early = await buried(backend)
    clock.advance(SECOND)
    late = await buried(backend)
    noon, now = clock.at(-SECOND), clock.at()

    assert await found(backend, moved_after=now) == [late]
    assert await found(backend, moved_before=now) == [early]
    assert await found(backend, moved_after=noon, moved_before=now) == [early]
    assert await found(backend, moved_after=noon + MILLISECOND / 2) == [late]
    assert await found(backend, moved_before=noon + MILLISECOND / 2) == [early]
    assert await _pages(backend, 1, moved_before=now) == [[early]]


async def test_groups_have_their_number_and_first_time(backend: Backend, clock: StoreClock) -> None:
    """By code, tenant, reason or category; the largest first, equals by their name."""
    start = clock.at()
    await buried(backend)
    clock.advance(SECOND)
    await buried(backend, BRASA, reason=DeadReason.EXPIRED, failure=GREY)
    clock.advance(SECOND)
    await buried(backend, BRASA, failure=GREY)
    middle, end = start + SECOND, start + 2 * SECOND
    group = backend.dead_letters.group

    assert await group("code") == [
        DeadGroup("451", 2, middle, end),
        DeadGroup("550", 1, start, start),
    ]
    assert await group("tenant") == [
        DeadGroup(BRASA, 2, middle, end),
        DeadGroup(ACME, 1, start, start),
    ]
    assert await group("reason") == [
        DeadGroup("permanent_error", 2, start, end),
        DeadGroup("expired", 1, middle, middle),
    ]
    assert [each.key for each in await group("category")] == [
        "TRANSIENT_ERROR",
        "PERMANENT_ERROR",
    ]


async def test_groups_count_matching_entries(backend: Backend, clock: StoreClock) -> None:
    """A filter narrows groups as it narrows lists."""
    await buried(backend)
    await buried(backend, BRASA)
    now = clock.at()

    assert await backend.dead_letters.group("code", DeadFilter(tenant=ACME)) == [
        DeadGroup("550", 1, now, now)
    ]
    assert await backend.dead_letters.group("code", DeadFilter(text="nowhere")) == []
    assert await backend.dead_letters.group("tenant", DeadFilter(moved_before=now)) == []


async def test_failures_that_are_alike_are_one_group(backend: Backend, clock: StoreClock) -> None:
    """Whatever ids and addresses their reasons name; a group is listed and counted like a code."""
    first = await buried(backend, failure={"reason": "550 ana@example.com is unknown, id=A1"})
    clock.advance(SECOND)
    other = await buried(backend, failure={"reason": "Mailbox full"})
    second = await buried(
        backend, BRASA, failure={"reason": "550 eva@example.org is unknown, id=B2"}
    )
    letter, unlike = [await backend.dead_letters.show(each) for each in (first, other)]
    assert letter is not None
    assert unlike is not None

    assert await found(backend, group=letter.group) == [second, first]
    assert await found(backend, group=letter.group, tenant=BRASA) == [second]
    assert await found(backend, group=letter.group, code="451") == []
    assert await backend.dead_letters.group("group") == [
        DeadGroup(letter.group, 2, clock.at() - SECOND, clock.at()),
        DeadGroup(unlike.group, 1, clock.at(), clock.at()),
    ]


async def test_sizes_name_the_largest_tenants(backend: Backend) -> None:
    """All are counted, a few are named; equals by their id."""
    for tenant in (ACME, BRASA, BRASA):
        await buried(backend, tenant)

    assert await backend.dead_letters.sizes(top=1) == (3, [(BRASA, 2)])
    assert await backend.dead_letters.sizes(top=9) == (3, [(BRASA, 2), (ACME, 1)])


_DEATHS = st.lists(
    st.tuples(
        st.sampled_from([ACME, BRASA]),
        st.sampled_from(["421", "550"]),
        st.sampled_from([DeadReason.EXPIRED, DeadReason.IN_DOUBT]),
        st.integers(0, 1),
    ),
    max_size=8,
)
_BY: list[GroupBy] = ["code", "tenant", "reason", "category", "group"]


@PROPERTY
@given(deaths=_DEATHS, limit=st.integers(1, 4), data=st.data())
async def test_all_pages_together_are_the_list(
    set_up: SetUp, deaths: list[Any], limit: int, data: st.DataObject
) -> None:
    """With any page size and any filter, and groups add up to it."""
    wanted: dict[str, Any] = data.draw(
        st.fixed_dictionaries(
            {},
            optional={
                "tenant": st.sampled_from([ACME, BRASA]),
                "code": st.sampled_from(["421", "550"]),
                "reason": st.sampled_from([DeadReason.EXPIRED, DeadReason.IN_DOUBT]),
            },
        )
    )
    clock = StoreClock()
    async with set_up.opened(clock) as backend:
        await backend.tenants.define(tenants_named([ACME, BRASA]))
        expected: list[MessageId] = []
        for tenant, code, reason, later in deaths:
            clock.advance(later * SECOND)
            died = await buried(backend, tenant, reason=reason, failure={"code": code})
            traits = {"tenant": tenant, "code": code, "reason": reason}
            if all(traits[name] == each for name, each in wanted.items()):
                expected.insert(0, died)

        pages = await _pages(backend, limit, **wanted)
        groups = [await backend.dead_letters.group(by, DeadFilter(**wanted)) for by in _BY]

    assert [each for page in pages for each in page] == expected
    assert all(len(page) == limit for page in pages[:-1])
    assert {sum(each.count for each in group) for group in groups} == {len(expected)}


async def test_ages_are_read_by_id(backend: Backend, clock: StoreClock) -> None:
    """Of those that have an entry; the oldest of all without reading the others."""
    none = await backend.dead_letters.oldest()
    first = await buried(backend)
    clock.advance(SECOND)
    second = await buried(backend, BRASA)

    moved = await backend.dead_letters.moved([second, first, MessageId("unknown")])

    assert moved.keys() == {first, second}
    assert moved[second] - moved[first] == SECOND
    assert (none, await backend.dead_letters.oldest()) == (None, moved[first])
    assert await backend.dead_letters.moved([]) == {}
