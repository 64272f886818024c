"""Validation of a tenant."""

from typing import Any

import pytest

from carteiro.model import ApiLimits
from carteiro.policy.tenancy import judge_new_tenant, judge_tenant
from support.builders import a_tenant


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"retry_preset": "classic"},
        {"default_from": "post@acme.example"},
        {"contact": "ops@brasa.example", "from_domains": ("acme.example",)},
        {"default_from": "post@AÇAÍ.example", "from_domains": ("açaí.example",)},
        {"from_domains": ("acme.example", "xn--aa-4iaz.example")},
        {"allowed_networks": ("10.0.0.1", "10.0.0.0/8", "2001:db8::/32")},
    ],
    ids=str,
)
def test_valid_tenant_has_no_errors(fields: dict[str, Any]) -> None:
    """Missing fields are as configured."""
    assert judge_tenant(a_tenant(**fields)) == []


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("id", {"id": ""}),
        ("name", {"name": "\0"}),
        ("name", {"name": "x" * 256}),
        ("tier", {"tier": "\0"}),
        ("tier", {"tier": ""}),
        ("weight", {"weight": 0.0}),
        ("weight", {"weight": 9e-7}),
        ("weight", {"weight": 1_000_001.0}),
        ("weight", {"weight": float("nan")}),
        ("cap", {"cap": 0}),
        ("cap", {"cap": 1_000_001}),
        ("cap", {"cap": 1.5}),
        ("per_hour", {"limits": ApiLimits(per_hour=-1)}),
        ("retry_preset", {"retry_preset": "unheard of"}),
        ("from_domains", {"from_domains": ("acme..example",)}),
        ("from_domains", {"from_domains": ("acme-.example",)}),
        ("from_domains", {"from_domains": ("acme.invalid",)}),
        ("default_from", {"default_from": "nobody"}),
        ("default_from", {"default_from": "two words@acme.example"}),
        ("default_from", {"default_from": "a@b.example", "from_domains": ("c.example",)}),
        ("contact", {"contact": "nobody"}),
        ("contact", {"contact": "two words@acme.example"}),
        ("allowed_networks", {"allowed_networks": ("10.0.0.1/8",)}),
    ],
    ids=str,
)
def test_error_has_its_field(field: str, fields: dict[str, Any]) -> None:
    """So that a form can show it in its place."""
    assert [fault.field for fault in judge_tenant(a_tenant(**fields))] == [field]


def test_new_tenant_ids_must_fit_into_a_url() -> None:
    """Older ids from the library can still be changed."""
    odd = a_tenant("acme/brasil")

    assert judge_tenant(odd) == []
    assert [fault.field for fault in judge_new_tenant(odd)] == ["id"]
    assert judge_new_tenant(a_tenant()) == []
