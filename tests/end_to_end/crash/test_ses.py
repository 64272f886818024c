"""A process killed -9 around its calls of SES: every mail accepted by SES is known, or in doubt."""

import signal
from dataclasses import replace

import pytest

from end_to_end.crash.child import Orders
from end_to_end.crash.children import bring_to_rest, child, sent
from end_to_end.crash.law import broken
from end_to_end.crash.places import Place
from end_to_end.crash.points import Plan
from end_to_end.crash.traffic import an_email
from support.ses_servers import a_twin_process

_PLANS = (
    Plan("deliver.asked"),
    Plan("handover.asked"),
    Plan("handover.begun", occurrence=3),
    Plan("deliver.answered"),
    Plan("deliver.answered", occurrence=4),
    Plan("settle.committed"),
)
# SES answers the same on every store; one kill shows that its accepted mails are then in doubt
# there, too.
_RUNS = [*(("sqlite", plan) for plan in _PLANS), ("postgres", Plan("deliver.answered"))]


@pytest.mark.parametrize(("place", "plan"), _RUNS, ids=str, indirect=["place"])
def test_process_killed_around_a_call_of_ses_loses_nothing(place: Place, plan: Plan) -> None:
    """SES itself is asked for its accepted mails, and the law of delivery holds for them."""
    emails = [
        *(an_email(f"customer{number}") for number in range(8)),
        *(an_email(f"once{number}", delivery="at_most_once") for number in range(4)),
    ]
    with a_twin_process(place.ses_folder) as twin:
        through_ses = replace(place, ses=twin.url)
        accepted = sent(through_ses, emails)
        with child(Orders(through_ses, plan, lingering_s=600.0, grace_s=0.1)) as victim:
            code = victim.wait_for_end()
        bring_to_rest(through_ses)

    assert code == -signal.SIGKILL, "the point was never reached"
    assert broken(through_ses, accepted) == []
