"""Delays that certain failures need: they lengthen those of a preset, only where configured."""

from dataclasses import replace
from datetime import timedelta

import pytest

from carteiro.model import Failure
from carteiro.policy import classify
from carteiro.policy.classify import classify_smtp
from carteiro.policy.patience import wait_after
from carteiro.policy.retry import PRESETS
from carteiro.providers.ses.rules import classify_ses

GATEWAY = replace(PRESETS["gateway"], is_patient=True)
GREYLISTED = classify_smtp("451 4.7.1 Greylisted, come back later")
FULL = classify_smtp("552 5.2.2 Mailbox full")
TOO_FAST = classify_smtp("421 4.7.28 too fast")
RECIPIENT_RATE = classify_smtp("450 4.2.1 user is receiving mail too quickly")

QUICK = [
    classify_smtp("421 4.3.2 Service not available"),
    classify_smtp("450 4.2.1 mailbox in use"),
    classify_ses(
        "Throttling", "Maximum sending rate exceeded"
    ),  # the shared rate falls: that is enough
    classify.network("gone"),
    classify.timeout("smtp"),
]


def minutes(failure: Failure, *failures: int) -> list[float]:
    """The delays without jitter."""
    return [wait_after(GATEWAY, failure, each, 0.0) / timedelta(minutes=1) for each in failures]


def test_each_kind_of_failure_has_its_delays() -> None:
    """They grow, and the last one repeats."""
    assert minutes(GREYLISTED, 1, 2, 3, 4, 5, 9) == [2, 5, 10, 20, 40, 40]
    assert minutes(TOO_FAST, 1, 2, 3) == minutes(RECIPIENT_RATE, 1, 2, 3) == [1, 2, 4]
    assert minutes(FULL, 0, 1, 2, 3, 4) == [60, 60, 360, 1440, 1440]


@pytest.mark.parametrize("failure", QUICK, ids=lambda each: each.rule)
def test_failure_that_may_pass_in_seconds_waits_as_the_preset_says(failure: Failure) -> None:
    assert wait_after(GATEWAY, failure, 1, 0.5) == GATEWAY.delay(1, 0.5)


@pytest.mark.parametrize("failure", [GREYLISTED, FULL, TOO_FAST], ids=lambda each: each.rule)
def test_preset_alone_decides_without_patience(failure: Failure) -> None:
    """The default."""
    usual = PRESETS["gateway"]

    assert wait_after(usual, failure, 1, 0.5) == usual.delay(1, 0.5) == timedelta(seconds=1)


@pytest.mark.parametrize("chance", [0.0, 0.5, 0.999])
def test_delay_is_lengthened_and_never_shortened(chance: float) -> None:
    """By less than a quarter, so that messages refused together spread; a longer preset stays."""
    patient = replace(PRESETS["transactional"], is_patient=True)

    assert timedelta(minutes=2) <= wait_after(GATEWAY, GREYLISTED, 1, chance)
    assert wait_after(GATEWAY, GREYLISTED, 1, chance) < timedelta(minutes=2.5)
    assert wait_after(patient, TOO_FAST, 3, chance) == patient.delay(3, chance)
