"""Routing: the first healthy provider, others only when nothing is in doubt."""

from carteiro.model import TenantId
from carteiro.policy.routing import MOMENT_S, ProviderHealth, Routes, choose, wait_for_another

ROUTES = Routes(
    ("first", "second"),
    by_type={"invoice": ("archive",)},
    by_tenant={TenantId("ana"): ("own", "first")},
)


def test_template_type_wins_over_tenant_and_tenant_over_default() -> None:
    """The most specific route wins."""
    assert ROUTES.of(TenantId("ana"), "invoice") == ("archive",)
    assert ROUTES.of(TenantId("ana"), "welcome") == ("own", "first")
    assert ROUTES.of(TenantId("bia"), None) == ("first", "second")


def test_every_provider_is_named_once() -> None:
    """Each is opened once, with any number of routes."""
    assert ROUTES.names == ("first", "second", "archive", "own")


def test_first_provider_is_chosen_while_its_circuit_is_closed() -> None:
    """The order decides."""
    route = [ProviderHealth("first"), ProviderHealth("second")]

    assert choose(route, last=None) == "first"


def test_provider_with_an_open_circuit_is_skipped() -> None:
    """The next one in order is used."""
    route = [ProviderHealth("first", wait=3), ProviderHealth("second")]

    assert choose(route, last=None) == "second"


def test_provider_in_unknown_state_is_waited_for() -> None:
    """It is checked at the start of every process: the second must not get all mail of a program run by cron."""
    asked, used_up = ProviderHealth("first", wait=MOMENT_S), ProviderHealth("first", wait=0.2)

    assert choose([asked, ProviderHealth("second")], last=None) == MOMENT_S
    assert choose([used_up, ProviderHealth("second")], last=None) == "second"
    assert choose([asked, ProviderHealth("second")], last=None, tried=["first"]) == "second"


def test_first_provider_to_recover_is_waited_for_when_all_circuits_are_open() -> None:
    """Nothing is charged for that."""
    route = [ProviderHealth("first", wait=3), ProviderHealth("second", wait=2)]

    assert choose(route, last=None) == 2


def test_message_does_not_go_back_to_the_provider_that_just_failed() -> None:
    """Others come first; without another, it is retried there."""
    first, second = ProviderHealth("first", is_suspect=True), ProviderHealth("second")

    assert choose([first, second], last="first") == "second"
    assert choose([first, second], last=None) == "first"
    assert choose([first], last="first") == "first"


def test_message_deferred_by_its_recipient_stays_with_its_provider() -> None:
    """The provider is healthy: a greylist wants to see the same one again."""
    route = [ProviderHealth("first"), ProviderHealth("second")]

    assert choose(route, last="first") == "first"


def test_tried_providers_come_after_the_others() -> None:
    """Each has its turn before any has a second one."""
    route = [ProviderHealth("first"), ProviderHealth("second"), ProviderHealth("third")]

    assert choose(route, last="second", tried=("first", "second")) == "third"
    assert choose(route[:2], last="second", tried=("first", "second")) == "first"


def test_next_provider_is_an_untried_one() -> None:
    """The soonest of them; None where all were tried."""
    route = [
        ProviderHealth("first"),
        ProviderHealth("second", wait=5),
        ProviderHealth("third", wait=3),
    ]

    assert wait_for_another(route, tried=("first",)) == 3
    assert wait_for_another(route, tried=("second", "third")) == 0
    assert wait_for_another(route, tried=("first", "second", "third")) is None
