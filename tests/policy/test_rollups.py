"""Figures: any split of what happened, folded in any order, gives the same sums."""

from collections import Counter
from itertools import pairwise
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carteiro.model.figures import Figures
from carteiro.policy import rollups
from carteiro.policy.rollups import DELAYS, MOST_CODES, Key, Note

_TENANTS = st.sampled_from(["acme", "brasa"])
_TEMPLATES = st.sampled_from([None, "welcome"])
_PROVIDERS = st.sampled_from(["smtp", "ses"])
_NUMBERS = st.integers(1, 12)
_MS = st.integers(0, 10**8)
_ACCEPTED = st.tuples(_TENANTS, _TEMPLATES, _NUMBERS)
_SENT = st.tuples(
    *(_TENANTS, _TEMPLATES, _PROVIDERS, _NUMBERS, st.integers(0, len(DELAYS)), _NUMBERS, _MS, _MS)
)
_COUNTERS = st.dictionaries(
    st.sampled_from(["failed", "retried", "error.A.1", "dead.A.1"]), st.integers(-3, 3)
)
_CHANGED = st.tuples(
    _TENANTS, _TEMPLATES, _MS, st.lists(st.tuples(_PROVIDERS, _MS, _COUNTERS), max_size=2)
)
_EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("accepted"), _MS, _ACCEPTED),
        st.tuples(st.just("sent"), _MS, _SENT),
        st.tuples(st.just("changed"), _MS, _CHANGED),
    ),
    max_size=30,
)


def _alone(event: tuple[str, int, Any]) -> Note:
    what, at, row = event
    return what, at, orjson.dumps([row]).decode()


def _together(events: list[tuple[str, int, Any]]) -> list[Note]:
    """One note for neighbours of the same form and time."""
    notes: list[tuple[str, int, list[Any]]] = []
    for what, at, row in events:
        if notes and notes[-1][:2] == (what, at):
            notes[-1][2].append(row)
        else:
            notes.append((what, at, [row]))
    return [(what, at, orjson.dumps(rows).decode()) for what, at, rows in notes]


def _folded(notes: list[Note], cuts: list[int]) -> dict[Key, Figures]:
    """Folds of some notes each, added to rows as a store does it."""
    rows: dict[Key, Figures] = {}
    for begin, end in pairwise([0, *sorted(cuts), len(notes)]):
        for key, figures in rollups.added(notes[begin:end]).items():
            if key in rows:
                rollups.add(figures, rollups.figures_of(rollups.text_of(rows[key])))
            rows[key] = rollups.bounded(figures)
    return rows


def _plain(rows: dict[Key, Figures]) -> dict[Key, dict[str, int]]:
    """Without zeros."""
    told = {key: {name: n for name, n in each.items() if n} for key, each in rows.items()}
    return {key: each for key, each in told.items() if each}


@given(_EVENTS, st.data())
def test_any_split_gives_the_same_sums(events: list[tuple[str, int, Any]], data: Any) -> None:
    """One note an event and one fold, or many in one note and several folds, in another order."""
    cuts = data.draw(st.lists(st.integers(0, len(events)), max_size=4))
    shuffled = data.draw(st.permutations(events))
    notes = _together(sorted(shuffled, key=lambda each: each[:2]))

    alone = _folded([_alone(each) for each in events], [])
    assert _plain(_folded(notes, [min(each, len(notes)) for each in cuts])) == _plain(alone)
    assert _plain(_folded([_alone(each) for each in shuffled], cuts)) == _plain(alone)


@given(_EVENTS)
def test_sums_are_those_of_the_events(events: list[tuple[str, int, Any]]) -> None:
    """By span, all together: counted here without the code under test."""
    rows = _folded([_alone(each) for each in events], [])

    for span in rollups.SPANS:
        total: Figures = Counter()
        for key, figures in rows.items():
            if key[:4] == (span, "", "", ""):
                total.update(figures)
        assert total["accepted"] == sum(row[2] for what, _, row in events if what == "accepted")
        assert total["sent"] == sum(row[5] for what, _, row in events if what == "sent")
        assert total["failed"] == sum(
            figures.get("failed", 0)
            for what, _, row in events
            if what == "changed"
            for _, _, figures in row[3]
        )
        assert sum(total[f"delay.{slot}"] for slot in range(len(DELAYS) + 1)) == total["sent"]


@given(_EVENTS)
def test_tenants_add_up_to_the_total(events: list[tuple[str, int, Any]]) -> None:
    """Every event has a tenant."""
    rows = _folded([_alone(each) for each in events], [])
    totals, tenants = (Counter[str](), Counter[str]())
    for key, figures in rows.items():
        if not key.template and not key.provider:
            (tenants if key.tenant else totals).update(figures)

    assert {name: n for name, n in totals.items() if n} == {
        name: n for name, n in tenants.items() if n
    }


def test_rare_code_that_is_taken_back_is_taken_from_the_others() -> None:
    """Else its failures would stay among them for ever."""
    many = Counter({f"dead.A.{code}": 2 for code in range(MOST_CODES + 3)})
    row = rollups.bounded(many)
    rollups.add(row, {name: -count for name, count in many.items()})

    assert rollups.bounded(row) == {}


def test_rare_codes_become_one() -> None:
    """A row stays small, and its sum the same."""
    many = Counter({f"error.A.{code}": code + 1 for code in range(MOST_CODES + 20)})
    kept = rollups.bounded(Counter(many))

    assert len(kept) == MOST_CODES + 1
    assert kept["error.other"] == sum(range(1, 21))
    assert kept.total() == many.total()


def test_failures_of_a_list_are_added_to_rows_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cost of a row is paid once, not for each message; another tenant's messages cost a caller nothing."""
    calls = []
    monkeypatch.setattr(rollups, "add", lambda to, more: calls.append(to.update(more)))
    failed = [["smtp", 5, {"failed": 1}]]
    note = "changed", 5, orjson.dumps([["acme", "welcome", 0, failed]] * 100).decode()

    assert rollups.added([note])[Key("hour", "acme", "", "", 0)] == {"failed": 100}
    assert len(calls) == 100 + 8
    assert rollups.added([note], tenant="brasa") == {}
    assert len(calls) == 100 + 8
