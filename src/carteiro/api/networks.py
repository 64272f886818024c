"""Client addresses and networks."""

import re
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TypeAlias

from starlette.requests import Request

Address: TypeAlias = IPv4Address | IPv6Address

_MOST_HOPS = 32  # no deployment has more proxies; a header may hold thousands of forged ones
_WITH_PORT = re.compile(r"([0-9.]+):[0-9]{1,5}|\[([^\]]+)\](?::[0-9]{1,5})?")


class Networks:
    """Networks by their usual names: ``10.0.0.0/8``, ``2001:db8::/32``, ``192.0.2.7``."""

    __slots__ = ("_networks",)

    def __init__(self, names: Iterable[str]) -> None:
        """Raise ValueError on a name that is not a network."""
        self._networks = [ip_network(name.strip(), strict=False) for name in names]

    def __bool__(self) -> bool:
        """True if there are any."""
        return bool(self._networks)

    def __contains__(self, address: Address) -> bool:
        """True if the address is in one of them; IPv4 inside IPv6 counts as IPv4."""
        return any(address in network for network in self._networks)


def client_address(request: Request, *, proxies: Networks) -> Address | None:
    """The client's address, as far as it can be trusted; None if unknown.

    Only trusted proxies are believed: from the nearest one on, the first address that is not a
    trusted proxy's is the client's. Addresses before it may be forged.
    """
    address = parsed_address("" if request.client is None else request.client.host)
    for hop in _forwarded(request) if proxies else ():
        if address is None or address not in proxies:
            break
        with_port = _WITH_PORT.fullmatch(hop)
        address = parsed_address(hop if with_port is None else with_port[1] or with_port[2])
    return address


def _forwarded(request: Request) -> Sequence[str]:
    """The hops of X-Forwarded-For, nearest first."""
    hops = ",".join(request.headers.getlist("x-forwarded-for")).split(",")
    return [hop.strip() for hop in reversed(hops) if hop.strip()][:_MOST_HOPS]


def counted_as(address: Address) -> Address:
    """The address to count for: a whole /64 network of IPv6, because a client can choose within it."""
    if isinstance(address, IPv4Address):
        return address
    return IPv6Address(int(address) >> 64 << 64)


def parsed_address(text: str) -> Address | None:
    """The parsed address, IPv4 inside IPv6 as IPv4; None if it is not an address."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
