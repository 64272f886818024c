"""Time budget of suspects in a worker, with a clock that the test moves."""

from collections import Counter
from collections.abc import Mapping

import pytest

from carteiro.model import TenantId
from carteiro.policy.suspicion import LONGEST_WAIT_S, OTHERS, Ration

A, B = TenantId("a"), TenantId("b")


def test_others_have_fifty_times_as_long_after_a_suspect() -> None:
    """Two seconds alone: the next one after a hundred."""
    ration = Ration(100.0)

    assert ration.wait(A, 100.0) == 0
    ration.spent(A, 102.0, seconds=2.0)

    assert ration.wait(A, 102.0) == pytest.approx(100)
    assert ration.wait(A, 202.0) == 0


def test_new_worker_runs_no_suspect_yet() -> None:
    """The one before it may have died of one."""
    ration = Ration(100.0, debt=30.0)

    assert ration.wait(A, 101.0) == pytest.approx(29)
    assert ration.wait(A, 130.0) == 0


def test_suspects_of_a_tenant_are_scheduled_one_by_one() -> None:
    """Each as long after the one before as it can run then, and none more than an hour from now."""
    ration = Ration(0.0)
    ration.spent(A, 0.0, seconds=1.0)

    waits = [ration.wait(A, 0.0) for _ in range(300)]

    assert waits[:3] == pytest.approx([50, 101, 152])
    assert max(waits) == LONGEST_WAIT_S


def test_second_suspect_waits() -> None:
    """Even if there is time left: one runs alone."""
    assert Ration(0.0).wait(A, 5.0, is_taken=True) > 0


def test_suspects_of_one_tenant_do_not_delay_that_of_another() -> None:
    """The other one is next but one, though the first tenant comes again before it."""
    ration = Ration(0.0)
    ration.spent(A, 0.0, seconds=1.0)
    for _ in range(1000):
        ration.wait(A, 0.0)

    assert ration.wait(B, 0.0) == pytest.approx(101)
    assert ration.wait(A, 50.0) == 0
    ration.spent(A, 51.0, seconds=1.0)
    assert ration.wait(A, 101.0) > 0
    assert ration.wait(B, 101.0) == 0


@pytest.mark.parametrize(
    "suspects",
    [{"a": 1000}, {"a": 1000, "b": 1}, {f"tenant-{number}": 20 for number in range(50)}],
    ids=["one tenant", "one tenant and a lonely one", "many tenants"],
)
@pytest.mark.parametrize("seconds", [0.001, 0.3, 40.0])
def test_suspects_have_less_than_a_twentieth_of_a_workers_time(
    suspects: Mapping[str, int], seconds: float
) -> None:
    """All tenants together; and every tenant has some run."""
    ration = Ration(0.0)
    now, alone, claims, ran = 0.0, 0.0, 0, Counter[str]()
    parked = [(0.0, number, name) for name, count in suspects.items() for number in range(count)]
    most = 100  # runs
    while parked and ran.total() < most:
        at, number, name = parked.pop(parked.index(min(parked)))
        now, claims = max(now, at), claims + 1
        wait = ration.wait(TenantId(name), now)
        if wait > 0:
            parked.append((now + wait, number, name))
            continue
        ran[name] += 1
        alone += seconds
        now += seconds
        ration.spent(TenantId(name), now, seconds=seconds)
        assert alone <= now / (1 + OTHERS) + seconds + 1e-6

    assert ran.total() == most
    assert ran.keys() == suspects.keys()
    hours = 1 + now / LONGEST_WAIT_S
    assert claims <= 2 * hours * sum(suspects.values()) + 4 * most  # each is claimed rarely
