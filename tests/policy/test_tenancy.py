"""What people may make of a tenant."""

from typing import Any

import pytest

from carteiro.model import ApiLimits
from carteiro.policy.tenancy import judge_tenant
from support.builders import a_tenant


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"retry_preset": "classic"},
        {"default_from": "post@acme.example"},
        {"default_from": "post@AÇAÍ.example", "from_domains": ("açaí.example",)},
        {"from_domains": ("acme.example", "xn--aa-4iaz.example")},
        {"allowed_networks": ("10.0.0.1", "10.0.0.0/8", "2001:db8::/32")},
    ],
    ids=str,
)
def test_a_tenant_that_makes_sense_has_no_faults(fields: dict[str, Any]) -> None:
    """Whatever is left out is as configured."""
    assert judge_tenant(a_tenant(**fields)) == []


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("id", {"id": ""}),
        ("weight", {"weight": 0.0}),
        ("per_hour", {"limits": ApiLimits(per_hour=-1)}),
        ("retry_preset", {"retry_preset": "unheard of"}),
        ("from_domains", {"from_domains": ("acme..example",)}),
        ("from_domains", {"from_domains": ("acme-.example",)}),
        ("from_domains", {"from_domains": ("acme.invalid",)}),
        ("default_from", {"default_from": "nobody"}),
        ("default_from", {"default_from": "two words@acme.example"}),
        ("default_from", {"default_from": "a@b.example", "from_domains": ("c.example",)}),
        ("allowed_networks", {"allowed_networks": ("10.0.0.1/8",)}),
    ],
    ids=str,
)
def test_a_fault_is_told_by_its_field(field: str, fields: dict[str, Any]) -> None:
    """So that a form can show it where it belongs."""
    assert [fault.field for fault in judge_tenant(a_tenant(**fields))] == [field]
