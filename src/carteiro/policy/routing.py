"""Which provider an attempt goes to: those of its route in order, as far as they are in health.

Pure: what is known of the providers' health comes from the caller.
"""

from collections.abc import Collection, Iterable, Mapping

from carteiro.model import TenantId, value

MOMENT_S = 0.005  # as long as it takes to hear whether a provider may be called


@value
class Routes:
    """Names of providers in order: for template types, for tenants, and for all others."""

    default: tuple[str, ...]
    by_type: Mapping[str, tuple[str, ...]]
    by_tenant: Mapping[TenantId, tuple[str, ...]]

    def of(self, tenant: TenantId, template_type: str | None) -> tuple[str, ...]:
        """The route of a message: of its template type, else of its tenant, else the default."""
        if template_type is not None and template_type in self.by_type:
            return self.by_type[template_type]
        return self.by_tenant.get(tenant, self.default)

    @property
    def names(self) -> tuple[str, ...]:
        """Every provider that some message may go to, once."""
        routes = (self.default, *self.by_type.values(), *self.by_tenant.values())
        return tuple(dict.fromkeys(name for route in routes for name in route))


@value
class ProviderHealth:
    """What is known of a provider: in how many seconds it may be called, and whether it failed when last heard of."""

    name: str
    wait: float = 0.0
    is_suspect: bool = False


def choose(
    route: Iterable[ProviderHealth], *, last: str | None, tried: Collection[str] = ()
) -> str | float:
    """The provider of the next attempt, or in how many seconds one of the route may be called.

    The first that may be called is chosen; those after it are not looked at: to look may cost something. One of
    which that is not known yet is waited for, for a moment: at the start of a process no other takes its place.
    Those that were ``tried`` with this message since it last waited come after the others, and so does the
    ``last`` one if it failed then and was not heard of since.
    """
    waits, spare = [], None
    for each in route:
        if each.wait:
            if each.wait <= MOMENT_S and each.name not in tried:
                return each.wait
            waits.append(each.wait)
        elif each.name in tried or (each.name == last and each.is_suspect):
            spare = spare or each.name
        else:
            return each.name
    return spare or min(waits)


def wait_for_another(route: Iterable[ProviderHealth], tried: Collection[str]) -> float | None:
    """In how many seconds a provider can be called that was not tried yet; None: there is none."""
    return min((each.wait for each in route if each.name not in tried), default=None)
