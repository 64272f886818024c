"""Retries: the documented delays, their bounds, and the failures that count."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carteiro.model import Category, Failure, Scope
from carteiro.policy.retry import PRESETS, Environment, RetryPolicy, default_preset

LOWEST, MIDDLE, HIGHEST = 0.0, 0.5, 1.0

chances = st.floats(min_value=0, max_value=1, exclude_max=True)


def a_failure(scope: Scope) -> Failure:
    """A retryable failure of this scope."""
    return Failure("421", Category.TRANSIENT_ERROR, True, scope, "not now", "a rule")  # noqa: FBT003


def milliseconds(number: float) -> timedelta:
    """A delay in milliseconds."""
    return timedelta(milliseconds=number)


@pytest.mark.parametrize(
    ("preset", "failed", "lowest", "middle", "highest"),
    [
        ("gateway", 1, 750, 1_000, 1_250),
        ("gateway", 2, 1_500, 2_000, 2_500),
        ("gateway", 3, 3_000, 4_000, 5_000),
        ("gateway", 4, 6_000, 8_000, 10_000),
        ("gateway", 5, 12_000, 16_000, 20_000),
        ("gateway", 6, 24_000, 32_000, 40_000),
        ("gateway", 7, 45_000, 60_000, 75_000),
        ("classic", 1, 750, 1_000, 1_250),
        ("classic", 5, 12_000, 16_000, 20_000),
        ("classic", 9, 192_000, 256_000, 320_000),
        ("classic", 10, 225_000, 300_000, 375_000),
        ("development", 1, 375, 500, 625),
        ("development", 2, 750, 1_000, 1_250),
        ("development", 6, 12_000, 16_000, 20_000),
        ("development", 7, 22_500, 30_000, 37_500),
        ("pipeline", 1, 750, 1_000, 1_250),
        ("pipeline", 2, 3_750, 5_000, 6_250),
        ("pipeline", 3, 22_500, 30_000, 37_500),
        ("pipeline", 4, 90_000, 120_000, 150_000),
        ("pipeline", 5, 450_000, 600_000, 750_000),
        ("pipeline", 6, 450_000, 600_000, 750_000),
        ("transactional", 1, 60_000, 60_000, 60_000),
        ("transactional", 2, 300_000, 300_000, 300_000),
        ("transactional", 3, 900_000, 900_000, 900_000),
        ("transactional", 4, 900_000, 900_000, 900_000),
        ("tickets", 1, 750, 1_000, 1_250),
        ("tickets", 2, 1_500, 2_000, 2_500),
        ("tickets", 6, 22_500, 30_000, 37_500),
    ],
)
def test_preset_has_its_documented_delays(
    preset: str, failed: int, lowest: int, middle: int, highest: int
) -> None:
    """Each doubles or follows its table, is capped, and only then spread by the jitter."""
    policy = PRESETS[preset]

    waits = [policy.delay(failed, chance) for chance in (LOWEST, MIDDLE, HIGHEST)]

    assert waits == [milliseconds(lowest), milliseconds(middle), milliseconds(highest)]


def test_presets_allow_the_documented_number_of_attempts() -> None:
    """Three retries after the first attempt make four attempts."""
    attempts = {name: policy.max_attempts for name, policy in PRESETS.items()}

    assert attempts == {
        "gateway": 5,
        "classic": 5,
        "development": 3,
        "pipeline": 5,
        "transactional": 4,
        "tickets": 3,
    }


@pytest.mark.parametrize("policy", PRESETS.values(), ids=PRESETS)
def test_every_preset_resends_once_in_doubt_and_charges_all(policy: RetryPolicy) -> None:
    """These defaults are the same for all presets."""
    assert (policy.max_in_doubt_resends, policy.charge) == (1, "all")


@pytest.mark.parametrize(
    ("environment", "preset"), [("development", "development"), ("production", "gateway")]
)
def test_environment_names_the_default_preset(environment: Environment, preset: str) -> None:
    assert default_preset(environment) == preset


def test_first_delay_applies_without_a_charged_failure() -> None:
    """An unknown outcome waits too, although nothing was charged yet."""
    doubling, table = PRESETS["gateway"], PRESETS["pipeline"]

    assert doubling.delay(0, MIDDLE) == doubling.delay(1, MIDDLE)
    assert table.delay(0, MIDDLE) == table.delay(1, MIDDLE)


def test_delay_has_whole_milliseconds() -> None:
    """The unit of every output."""
    policy = RetryPolicy(max_attempts=5, base=timedelta(microseconds=1_499), jitter=0)

    assert policy.delay(1, MIDDLE) == milliseconds(1)
    assert policy.delay(2, MIDDLE) == milliseconds(3)


def test_delay_is_never_negative() -> None:
    """A jitter larger than the delay itself ends at zero."""
    policy = RetryPolicy(max_attempts=5, base=timedelta(seconds=1), jitter=2)

    assert policy.delay(1, LOWEST) == milliseconds(0)


@given(preset=st.sampled_from(sorted(PRESETS)), failed=st.integers(0, 10**12), chance=chances)
def test_delay_stays_within_the_jitter_of_its_base(preset: str, failed: int, chance: float) -> None:
    """With any random number and any number of failures; it is reproducible."""
    policy = PRESETS[preset]
    middle = policy.delay(failed, MIDDLE)

    wait = policy.delay(failed, chance)

    assert abs(wait - middle) <= middle * policy.jitter + milliseconds(1)
    assert wait == policy.delay(failed, chance)


@given(
    base=st.timedeltas(min_value=timedelta(0)),
    cap=st.timedeltas(min_value=timedelta(0)),
    jitter=st.floats(min_value=0, max_value=10),
    failed=st.integers(min_value=-(10**6), max_value=10**18),
    chance=chances,
)
def test_delay_never_overflows(
    base: timedelta, cap: timedelta, jitter: float, failed: int, chance: float
) -> None:
    """The longest base, doubled for ever, is still a delay, and not a negative one."""
    policy = RetryPolicy(max_attempts=5, base=base, cap=cap, jitter=jitter)

    assert policy.delay(failed, chance) >= timedelta(0)


@given(failed=st.integers(1, 1_000))
def test_delays_without_jitter_never_shrink(failed: int) -> None:
    """Each failure waits at least as long as the one before."""
    for policy in PRESETS.values():
        assert policy.delay(failed, MIDDLE) <= policy.delay(failed + 1, MIDDLE)


@pytest.mark.parametrize("scope", Scope)
def test_every_failure_is_charged_by_default(scope: Scope) -> None:
    """An answer of a provider counts, with any scope."""
    assert PRESETS["gateway"].charges(a_failure(scope))


@pytest.mark.parametrize(
    ("scope", "is_charged"),
    [
        (Scope.MESSAGE, True),
        (Scope.RECIPIENT, True),
        (Scope.SENDER, False),
        (Scope.TENANT, False),
        (Scope.PROVIDER, False),
        (Scope.DESTINATION, False),
    ],
)
def test_charging_the_message_spares_it_the_faults_of_others(
    scope: Scope,
    is_charged: bool,
) -> None:
    """With charge "message" only failures of the message and its recipient count."""
    policy = RetryPolicy(max_attempts=5, charge="message")

    assert policy.charges(a_failure(scope)) is is_charged
