"""Suppressed addresses: their keys, their duration, and the consequences of feedback."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carteiro.model import (
    BounceKind,
    EventType,
    MessageId,
    NewSuppression,
    SuppressionReason,
    TenantId,
)
from carteiro.policy.suppression import (
    SOFT_BOUNCES,
    SOFT_WINDOW,
    Record,
    Report,
    addresses_of,
    key_of,
    merge_all,
    suppressions,
)
from support.feedback import AT, a_feedback

ACME, BRASA = TenantId("acme"), TenantId("brasa")
WINDOW_MS = SOFT_WINDOW.days * 86_400_000


@pytest.mark.parametrize(
    "spelling", ["ana@example.com", "ANA@example.com", "ana@EXAMPLE.COM", "Ana@Example.Com"]
)
def test_address_has_one_key_in_any_case(spelling: str) -> None:
    """No two mailboxes differ only in case."""
    assert key_of(ACME, spelling) == key_of(ACME, "ana@example.com")


def test_same_address_of_two_tenants_has_two_keys() -> None:
    """One list reveals nothing of the other; nor can a name run into an address."""
    assert key_of(ACME, "ana@example.com") != key_of(BRASA, "ana@example.com")
    assert key_of(TenantId("a"), "b@example.com") != key_of(TenantId("ab"), "@example.com")


@pytest.mark.parametrize("odd", ["", "nobody", "\udcff@example.com", "\0"])
def test_any_text_has_a_key(odd: str) -> None:
    """An invalid address is nobody's, and not an error."""
    assert len(key_of(ACME, odd)) == 64


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (None, []),
        ("", []),
        ("[]", []),
        ('{"to":"a@b.c"}', ["a@b.c"]),
        (
            '{"to":"a@b.c","cc":["d@e.f"],"bcc":["g@h.i","j@k.l"]}',
            ["a@b.c", "d@e.f", "g@h.i", "j@k.l"],
        ),
        ('{"to":1,"cc":"d@e.f","bcc":[null,"g@h.i"]}', ["g@h.i"]),
    ],
)
def test_recipients_of_an_email(content: str | None, found: list[str]) -> None:
    """To, cc and bcc; an unreadable one is for nobody."""
    assert list(addresses_of(content)) == found


_told = st.builds(
    Report,
    key=st.sampled_from(["a", "b"]),
    reason=st.sampled_from(
        [
            SuppressionReason.HARD_BOUNCE,
            SuppressionReason.COMPLAINT,
            SuppressionReason.SOFT_BOUNCE,
        ]
    ),
    address=st.just("ana@example.com"),
    at=st.integers(0, 3 * WINDOW_MS),
    expires_at=st.none(),
)


def _after(reports: list[Report]) -> set[Record]:
    known: dict[tuple[str, str], Record] = {}
    for each in reports:
        for record in merge_all(known, [each]):
            known[record.key, record.reason.value] = record
    return set(known.values())


@given(
    drawn=st.lists(_told, max_size=8).flatmap(
        lambda reports: st.tuples(st.just(reports), st.permutations(reports))
    )
)
def test_order_and_grouping_of_feedback_do_not_matter(
    drawn: tuple[list[Report], list[Report]],
) -> None:
    """Repeated, in another order, or all at once: the same records."""
    reports, other = drawn

    assert _after(reports) == _after([*other, *reports]) == set(merge_all({}, reports))


def test_soft_bounces_are_counted_in_their_window() -> None:
    """The last ones alone; their suppression ends one window after the last."""
    soft = SuppressionReason.SOFT_BOUNCE
    times = [each * (WINDOW_MS // (SOFT_BOUNCES - 1)) for each in range(SOFT_BOUNCES)]
    within = [Report("a", soft, None, each, None) for each in times]
    beyond = [*within[:-1], Report("a", soft, None, times[-1] + 1, None)]

    [enough], [too_far] = merge_all({}, within), merge_all({}, beyond)

    assert (enough.is_active, enough.expires_at) == (True, times[-1] + WINDOW_MS)
    assert (too_far.is_active, too_far.bounces) == (False, (*times[:-1], times[-1] + 1))


@pytest.mark.parametrize(
    ("type", "bounce", "reason"),
    [
        (EventType.COMPLAINED, None, SuppressionReason.COMPLAINT),
        (EventType.BOUNCED, BounceKind.HARD, SuppressionReason.HARD_BOUNCE),
        (EventType.BOUNCED, BounceKind.SOFT, SuppressionReason.SOFT_BOUNCE),
        (EventType.BOUNCED, BounceKind.REJECTED, None),
        (EventType.BOUNCED, None, None),
        (EventType.DELIVERED, None, None),
        (EventType.SENT, None, None),
    ],
)
def test_consequences_of_feedback(
    type: EventType, bounce: BounceKind | None, reason: SuppressionReason | None
) -> None:
    """For each recipient that it names."""
    people = ("ana@example.com", "bia@example.com")
    told = a_feedback(MessageId("m"), type, bounce=bounce, recipients=people)

    found = suppressions(told)

    assert found == (
        [] if reason is None else [NewSuppression(each, reason, AT) for each in people]
    )
