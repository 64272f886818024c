"""Routing: the first provider in health, others only when nothing is in doubt."""

from carteiro.model import TenantId
from carteiro.policy.routing import MOMENT_S, ProviderHealth, Routes, choose, wait_for_another

ROUTES = Routes(
    ("first", "second"),
    by_type={"invoice": ("archive",)},
    by_tenant={TenantId("ana"): ("own", "first")},
)


def test_a_template_type_goes_before_a_tenant_and_that_before_all() -> None:
    """The most particular wins."""
    assert ROUTES.of(TenantId("ana"), "invoice") == ("archive",)
    assert ROUTES.of(TenantId("ana"), "welcome") == ("own", "first")
    assert ROUTES.of(TenantId("bia"), None) == ("first", "second")


def test_every_provider_is_named_once() -> None:
    """Each is opened once, however many routes lead to it."""
    assert ROUTES.names == ("first", "second", "archive", "own")


def test_the_first_is_chosen_while_it_may_be_called() -> None:
    """Order decides."""
    route = [ProviderHealth("first"), ProviderHealth("second")]

    assert choose(route, last=None) == "first"


def test_what_is_left_alone_is_passed_over() -> None:
    """The next one in order takes its place."""
    route = [ProviderHealth("first", wait=3), ProviderHealth("second")]

    assert choose(route, last=None) == "second"


def test_one_of_which_nothing_is_known_yet_is_waited_for() -> None:
    """It is asked at the start of every process: the second must not take all mail of a program run by cron."""
    asked, used_up = ProviderHealth("first", wait=MOMENT_S), ProviderHealth("first", wait=0.2)

    assert choose([asked, ProviderHealth("second")], last=None) == MOMENT_S
    assert choose([used_up, ProviderHealth("second")], last=None) == "second"
    assert choose([asked, ProviderHealth("second")], last=None, tried=["first"]) == "second"


def test_when_none_may_be_called_the_soonest_is_waited_for() -> None:
    """Nothing is charged for that."""
    route = [ProviderHealth("first", wait=3), ProviderHealth("second", wait=2)]

    assert choose(route, last=None) == 2


def test_a_message_does_not_go_back_to_the_one_that_just_failed() -> None:
    """Others are asked first; where there is no other, it is tried again."""
    first, second = ProviderHealth("first", is_suspect=True), ProviderHealth("second")

    assert choose([first, second], last="first") == "second"
    assert choose([first, second], last=None) == "first"
    assert choose([first], last="first") == "first"


def test_a_message_that_its_recipient_deferred_stays_where_it_was() -> None:
    """The provider is well: a greylist wants to see the same one again."""
    route = [ProviderHealth("first"), ProviderHealth("second")]

    assert choose(route, last="first") == "first"


def test_those_that_were_tried_come_after_the_others() -> None:
    """Each has its turn before any has a second one."""
    route = [ProviderHealth("first"), ProviderHealth("second"), ProviderHealth("third")]

    assert choose(route, last="second", tried=("first", "second")) == "third"
    assert choose(route[:2], last="second", tried=("first", "second")) == "first"


def test_another_is_one_that_was_not_tried() -> None:
    """The soonest of them; None where all were."""
    route = [
        ProviderHealth("first"),
        ProviderHealth("second", wait=5),
        ProviderHealth("third", wait=3),
    ]

    assert wait_for_another(route, tried=("first",)) == 3
    assert wait_for_another(route, tried=("second", "third")) == 0
    assert wait_for_another(route, tried=("first", "second", "third")) is None
