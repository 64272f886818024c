"""Choose the provider of an attempt: the first healthy one of its route.

Pure: the health of the providers comes from the caller.
"""

from collections.abc import Collection, Iterable, Mapping

from carteiro.model import TenantId, value

MOMENT_S = 0.005  # the time to learn whether a provider may be called


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
        """Every provider of any route, once."""
        routes = (self.default, *self.by_type.values(), *self.by_tenant.values())
        return tuple(dict.fromkeys(name for route in routes for name in route))


@value
class ProviderHealth:
    """Health of a provider: seconds until it may be called, and whether its last result was a failure."""

    name: str
    wait: float = 0.0
    is_suspect: bool = False


def choose(
    route: Iterable[ProviderHealth], *, last: str | None, tried: Collection[str] = ()
) -> str | float:
    """The provider of the next attempt, or the seconds until one of the route may be called.

    The first available provider is chosen; those after it are not checked, as a check may cost something. If
    its state is not known yet, it is awaited for a moment: at the start of a process no other replaces it.
    Providers that were ``tried`` with this message since its last wait come after the others. So does the
    ``last`` one, if it failed and has had no newer result.
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
    """Seconds until an untried provider can be called; None: there is none."""
    return min((each.wait for each in route if each.name not in tried), default=None)
