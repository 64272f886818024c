"""What people may make of a tenant: more than the shape that every store checks."""

from collections.abc import Iterator

from carteiro.errors import FieldError
from carteiro.model import Tenant
from carteiro.policy.addresses import judge_address
from carteiro.policy.names import LABEL_RULE, NAME_RULE, is_label, is_name
from carteiro.policy.retry import PRESETS


def judge_tenant(tenant: Tenant) -> list[FieldError]:
    """What is wrong with a tenant, by the names of its fields; empty if it may be defined."""
    try:
        tenant.check()
    except ValueError as error:
        field, _, fault = str(error).partition(" ")
        return [FieldError(field, fault)]
    return list(_faults(tenant))


def judge_new_tenant(tenant: Tenant) -> list[FieldError]:
    """As `judge_tenant`, for one that a person makes up: its id must fit into an address of the API."""
    in_address = [] if "/" not in tenant.id else [FieldError("id", "must not have a / in it")]
    return in_address + judge_tenant(tenant)


def domain_of(address: str) -> str:
    """The domain of an address in its normal form, so that equal domains are equal texts."""
    return (judge_address(address) or address).rpartition("@")[2].lower()


def may_send_as(tenant: Tenant, address: str) -> bool:
    """Whether the tenant may put this address into From; a domain stands for itself, not for those below it."""
    if not tenant.from_domains:
        return True
    return domain_of(address) in {domain_of(f"x@{domain}") for domain in tenant.from_domains}


def _faults(tenant: Tenant) -> Iterator[FieldError]:
    if not is_name(tenant.id):
        yield FieldError("id", NAME_RULE)
    if not is_label(tenant.name):
        yield FieldError("name", LABEL_RULE)
    if tenant.tier is not None and not is_name(tenant.tier):
        yield FieldError("tier", NAME_RULE)
    if tenant.retry_preset is not None and tenant.retry_preset not in PRESETS:
        yield FieldError("retry_preset", f"must be one of {', '.join(PRESETS)}")
    for domain in tenant.from_domains:
        if judge_address(f"x@{domain}") is None:
            yield FieldError("from_domains", f"must be names of domains: {domain!r} is none")
    yield from _default_from_faults(tenant)


def _default_from_faults(tenant: Tenant) -> Iterator[FieldError]:
    if tenant.default_from is None:
        return
    if judge_address(tenant.default_from) is None:
        yield FieldError("default_from", "must be an e-mail address")
    elif not may_send_as(tenant, tenant.default_from):
        yield FieldError("default_from", "must be of one of the from_domains")
