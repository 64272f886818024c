"""Failure groups: any split of the notes, added in any order, gives the same groups and counts."""

from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from carteiro.model import Failure
from carteiro.policy import failures
from carteiro.policy.failures import MOST_SAMPLES, Count, Group, Place, Told, said_of
from carteiro.policy.grouping import alike
from carteiro.policy.history import DAY_MS, Result, history_of
from support.builders import a_failure

_SAID = ("smtp", "rule", "", "full", "452", "QUOTA_ERROR", "recipient")
_AT = st.integers(0, 3 * failures.HOUR_MS)
_TOLD = st.builds(
    Told,
    at=_AT,
    tenant=st.sampled_from(["acme", "brasa", "gone"]),
    message=st.sampled_from([f"m-{number}" for number in range(9)]),
    group=st.sampled_from(["g-1", "g-2"]),
    attempts=st.integers(0, 1),
    deaths=st.integers(0, 1),
    said=st.just(_SAID),
)
_MANY = st.lists(_TOLD, max_size=30)
TENANTS = {"acme", "brasa"}


def _added(parts: list[list[Told]], resolved_at: int | None) -> tuple[Any, Any]:
    """Added part by part, as folds do."""
    groups: dict[str, Group] = {}
    if resolved_at is not None:
        row: Any = ("g-1", *_SAID, "resolved", 0, 0, 0, resolved_at)
        groups["g-1"] = Group(*row)
    counts: dict[Place, Count] = {}
    for part in parts:
        failures.add_groups(groups, part)
        more: dict[Place, Count] = {}
        failures.add_counts(more, part, TENANTS)
        for place, count in counts.items():
            if place in more:
                more[place].add(count)
            else:
                more[place] = count
        counts = more
    return groups, counts


@given(_MANY, st.none() | _AT, st.data())
def test_any_split_gives_the_same_groups(
    told: list[Told], resolved_at: int | None, data: st.DataObject
) -> None:
    """All at once, or in parts and in another order."""
    shuffled = data.draw(st.permutations(told))
    cut = data.draw(st.integers(0, len(told)))

    together = _added([told], resolved_at)
    assert _added([shuffled[:cut], shuffled[cut:]], resolved_at) == together


@given(_MANY)
def test_counts_are_those_of_the_failures(told: list[Told]) -> None:
    """Groups, hours and tenants add up to the same; a tenant that is gone is only in the total."""
    groups, counts = _added([told], None)

    assert sum(each.attempts for each in groups.values()) == sum(each.attempts for each in told)
    for tenants, members in (({""}, {*TENANTS, "gone"}), (TENANTS, TENANTS)):
        deaths = sum(each.deaths for place, each in counts.items() if place[2] in tenants)
        assert deaths == sum(each.deaths for each in told if each.tenant in members)
    assert all(len(each.samples) <= MOST_SAMPLES for each in counts.values())
    assert not any(each.samples for place, each in counts.items() if not place[2])


@given(_MANY, _AT)
def test_resolved_group_opens_only_with_a_later_failure(told: list[Told], resolved_at: int) -> None:
    """The new episode begins with the first of them."""
    groups, _ = _added([told], resolved_at)
    later = [each.at for each in told if each.group == "g-1" and each.at > resolved_at]

    assert groups["g-1"].state == ("open" if later else "resolved")
    assert groups["g-1"].opened_at == (min(later) if later else 0)


def test_notes_without_failures_have_none() -> None:
    """Of any form, also of changes."""
    changed = [["acme", None, 0, [["smtp", 1, {"sent": 1}]]]]
    notes = [
        ("accepted", 1, '[["acme", null, 3]]'),
        ("changed", 1, orjson.dumps(changed).decode()),
        ("seen", 1, "{}"),
    ]

    assert [*failures.told(notes)] == []


def test_code_of_a_task_may_be_anything() -> None:
    """Only what looks like a code is kept."""
    told: list[Failure] = [a_failure("452"), a_failure("MY_CODE"), a_failure("ana@example.com")]

    assert [said_of(each, alike("task", each))[4] for each in told] == ["452", "MY_CODE", "OTHER"]


_RESULTS = st.lists(
    st.builds(
        Result,
        at=st.integers(0, 5 * DAY_MS),
        tenant=st.sampled_from(["acme", "brasa", "unknown"]),
        group=st.sampled_from(["g-1", "g-2"]),
        figures=st.dictionaries(st.sampled_from(["sent.2", "failed.3", "lost"]), st.integers(1, 9)),
    ),
    max_size=20,
)


@given(_RESULTS, st.data())
def test_any_split_gives_the_same_histories(told: list[Result], data: st.DataObject) -> None:
    """Of each tenant and of all, where failures are known; others are left out."""
    shuffled = data.draw(st.permutations(told))
    cut = data.draw(st.integers(0, len(told)))
    known = [("g-1", failures.ALL_HOURS, tenant) for tenant in ("", "acme", "brasa")]
    parts = ([told], [shuffled[:cut], shuffled[cut:]])
    found: list[Any] = []

    for each in parts:
        counts = {place: Count(1, 0, 0, 0) for place in known}
        changed = [failures.add_results(counts, part, 5 * DAY_MS) for part in each]
        assert set().union(*changed) <= set(known)
        found.append({place: history_of(count.history).days for place, count in counts.items()})

    assert found[0] == found[1]
    for tenant in ("acme", "brasa"):
        own = [each for each in told if (each.group, each.tenant) == ("g-1", tenant)]
        days = found[0]["g-1", failures.ALL_HOURS, tenant]
        assert sum(figures.total() for figures in days.values()) == sum(
            sum(each.figures.values()) for each in own
        )
