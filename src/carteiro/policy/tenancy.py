"""Checks of a tenant that users define, beyond the shape that every store checks."""

from collections.abc import Collection, Iterator
from datetime import timedelta
from functools import lru_cache

from carteiro.errors import FieldError
from carteiro.model import Tenant, TenantId, value
from carteiro.policy.addresses import judge_address
from carteiro.policy.names import LABEL_RULE, NAME_RULE, is_label, is_name
from carteiro.policy.retry import PRESETS
from carteiro.policy.unsubscribe import OneClick

DEFAULT_TTL = timedelta(hours=24)


@value
class SendingRules:
    """The operator's rules for e-mails that are submitted or edited.

    ``relay_headers``: names, in lower case, of allowed headers that control a relay.
    ``default_from_only``: tenants that have claimed no domain may only use their default From.
    ``one_click``: the links to unsubscribe that templates may offer; None: they may not.
    """

    default_ttl: timedelta = DEFAULT_TTL
    relay_headers: Collection[str] = ()
    default_from_only: bool = False
    one_click: OneClick | None = None


def judge_tenant(tenant: Tenant, *, presets: Collection[str] = PRESETS) -> list[FieldError]:
    """The faults of a tenant, by the names of its fields; empty if it may be defined.

    ``presets`` are the allowed retry presets.
    """
    try:
        tenant.check()
    except ValueError as error:
        field, _, fault = str(error).partition(" ")
        return [FieldError(field, fault)]
    return list(_faults(tenant, presets))


def judge_new_tenant(tenant: Tenant, *, presets: Collection[str] = PRESETS) -> list[FieldError]:
    """As `judge_tenant`, for a new tenant: its id must fit into a URL of the API."""
    in_address = [] if "/" not in tenant.id else [FieldError("id", "must not contain /")]
    return in_address + judge_tenant(tenant, presets=presets)


def domain_of(address: str) -> str:
    """The domain of an address in normal form, so that equal domains are equal texts."""
    return (judge_address(address) or address).rpartition("@")[2].lower()


def domains_of(tenant: Tenant) -> frozenset[str]:
    """The domains that the tenant has claimed, in normal form."""
    return _normal_domains(tenant.from_domains)


@lru_cache(maxsize=4096)  # called for each e-mail of the tenant
def _normal_domains(domains: tuple[str, ...]) -> frozenset[str]:
    return frozenset([domain_of(f"x@{domain}") for domain in domains])


def claims_over(domain: str) -> list[str]:
    """The domains whose claim reserves this domain, nearest first: itself, then those above it."""
    parts = domain.split(".")
    return [".".join(parts[place:]) for place in range(max(1, len(parts) - 1))]


def asked_sender(tenant: Tenant, address: str | None) -> str | None:
    """The From whose claimant must be looked up; None: there is no From, or the tenant's own list decides."""
    return None if tenant.from_domains else address or tenant.default_from


def sender_fault(
    tenant: Tenant, address: str, *, owner: TenantId | None, default_only: bool
) -> str | None:
    """The reason why the tenant may not use this From; None: it may.

    A listed domain does not include its subdomains. ``owner``: the tenant that claimed the domain, or the
    nearest one above it. ``default_only``: a tenant without a list may only use its default From.
    """
    if tenant.from_domains:
        return None if domain_of(address) in domains_of(tenant) else _NOT_LISTED
    if owner not in {None, tenant.id}:
        return CLAIMED_BY_ANOTHER
    if default_only and address != _normal(tenant.default_from):
        return _NOT_THE_DEFAULT
    return None


_NOT_LISTED = "is not in a domain that the tenant may send from"
CLAIMED_BY_ANOTHER = "is in a domain that another tenant has claimed"
_NOT_THE_DEFAULT = "must be the tenant's default From, as the tenant has no from_domains"


def _normal(address: str | None) -> str | None:
    return None if address is None else judge_address(address) or address


def _faults(tenant: Tenant, presets: Collection[str]) -> Iterator[FieldError]:
    if not is_name(tenant.id):
        yield FieldError("id", NAME_RULE)
    if not is_label(tenant.name):
        yield FieldError("name", LABEL_RULE)
    if tenant.tier is not None and not is_name(tenant.tier):
        yield FieldError("tier", NAME_RULE)
    if tenant.retry_preset is not None and tenant.retry_preset not in presets:
        yield FieldError("retry_preset", f"must be one of {', '.join(presets)}")
    for domain in tenant.from_domains:
        if judge_address(f"x@{domain}") is None:
            yield FieldError("from_domains", f"must be names of domains: {domain!r} is not one")
    if tenant.contact is not None and judge_address(tenant.contact) is None:
        yield FieldError("contact", "must be an e-mail address")
    yield from _default_from_faults(tenant)


def _default_from_faults(tenant: Tenant) -> Iterator[FieldError]:
    if tenant.default_from is None:
        return
    if judge_address(tenant.default_from) is None:
        yield FieldError("default_from", "must be an e-mail address")
    elif tenant.from_domains and domain_of(tenant.default_from) not in domains_of(tenant):
        yield FieldError("default_from", "must be in one of the from_domains")
