"""Notices: about dead letters, and until they are given up."""

from datetime import timedelta

from carteiro.model import TenantId
from carteiro.model.alerts import DeadCount
from carteiro.policy.notices import (
    dead_letter_notice,
    is_given_up,
    trial_notice,
    wait_after,
    without,
)
from support.alerting import MINUTE, NOON, notices_of


def test_notice_about_dead_letters_has_counts() -> None:
    counts = [DeadCount(TenantId("acme"), "550", 3), DeadCount(TenantId("brasa"), "421", 1)]
    notice = dead_letter_notice(counts, total=9, since=NOON, now=NOON + MINUTE)

    assert notice is not None
    assert (notice.value, notice.counts) == (9, tuple(counts))
    assert without(notice, TenantId("acme")).counts == tuple(counts[1:])
    assert dead_letter_notice([], total=0, since=NOON, now=NOON) is None


def test_notice_has_the_names_of_its_subject() -> None:
    """Its commands can be pasted; those beyond the limit have no name."""
    [notice, _] = notices_of("TemplateFails", "acme/o'neill welcome")
    [many, _] = notices_of("TenantManyDeadLetters", "")

    assert notice.action.endswith(
        """carteiro template ls --tenant acme --type 'o'"'"'neill welcome'"""
    )
    assert "welcome" in notice.for_tenant
    assert many.action.endswith("--tenant TENANT")


def test_waits_grow_up_to_a_bound_and_end_after_a_day() -> None:
    waits = [wait_after(tries).total_seconds() for tries in (0, 1, 2, 50)]
    notice = trial_notice("ana", NOON)

    assert waits == [5, 10, 20, 600]
    assert [is_given_up(notice, NOON + timedelta(hours=each)) for each in (23, 24)] == [
        False,
        True,
    ]


def test_tests_of_a_minute_are_one_notice() -> None:
    """Of one requester: while a channel is unreachable, no more than these wait for it."""
    ids = [trial_notice("ana", NOON + timedelta(seconds=seconds)).id for seconds in (0, 59, 60)]

    assert ids[0] == ids[1] != ids[2]
    assert trial_notice("rui", NOON).id != ids[0]
