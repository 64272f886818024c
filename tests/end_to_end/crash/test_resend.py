"""A process killed -9 around its call of Resend: after a restart each mail was delivered, and none twice."""

import signal
from collections import Counter
from dataclasses import replace

import pytest

from carteiro.model import State
from end_to_end.crash.child import Orders
from end_to_end.crash.children import bring_to_rest, child, sent
from end_to_end.crash.law import lives
from end_to_end.crash.places import Place
from end_to_end.crash.points import Plan
from support.resend_process import delivered_by, running_twin

MAILS = 6
# Before the call, before its body, after its answer, and before its result is stored.
_POINTS = (
    "declare.committed",
    "deliver.asked",
    "handover.asked",
    "handover.begun",
    "deliver.answered",
    "settle.uncommitted",
    "settle.committed",
)
_PLANS = [Plan(point, occurrence=2) for point in _POINTS]
_RUNS = [
    *(("sqlite", plan) for plan in _PLANS),
    ("postgres", Plan("deliver.answered", occurrence=2)),
]


@pytest.mark.parametrize(("place", "plan"), _RUNS, ids=str, indirect=["place"])
def test_process_killed_around_its_call_delivers_each_mail_once(
    place: Place, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With any delivery guarantee: a doubt is replayed under its key."""
    with running_twin() as (url, key):
        monkeypatch.setenv("RESEND_API_KEY", key)
        place = replace(place, resend=url)
        accepted = sent(
            place,
            [
                {
                    "tenant": "acme",
                    "to": f"u{number}@example.com",
                    "subject": "Bom dia",
                    "text": "Bom dia",
                    "delivery": "at_most_once" if number % 2 else "at_least_once",
                }
                for number in range(MAILS)
            ],
        )

        with child(Orders(place, plan, until_idle=True, emails_only=True)) as victim:
            code = victim.wait_for_end()
        bring_to_rest(place)
        delivered = Counter(each.key for each in delivered_by(url))

    assert code == -signal.SIGKILL, "the point was never reached"
    assert {life.state for life in lives(place)} == {State.SENT}
    assert delivered == {f"{each}:1": 1 for each in accepted}
