"""Find the address of the client that sent a request, also behind proxies.

A proxy appends the address that it received a request from to `X-Forwarded-For`. Anyone can send
that header, so it is read from its end, and only as long as the address before was that of a
trusted proxy (`ADE_TRUSTED_PROXIES`). The first address that is not one is the client's.
"""

import ipaddress
from collections.abc import Iterable

from starlette.types import Scope

FORWARDED = b"x-forwarded-for"
PROXIES_MAX = 16
IPV6_CLIENT_BITS = 64
LOOPBACK = ("127.0.0.0/8", "::1")
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Networks:
    """Tell whether an address belongs to some networks."""

    def __init__(self, networks: Iterable[str] = ()) -> None:
        self._networks = tuple(ipaddress.ip_network(one, strict=False) for one in networks)

    def __contains__(self, address: str) -> bool:
        """Tell whether an address, as text, is in one of the networks."""
        if not self._networks:
            return False
        found = _parse(address)
        return found is not None and any(found in network for network in self._networks)


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach a host name."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def client_address(scope: Scope, proxies: Networks) -> str:
    """Return the address of the client of a request; empty if the transport has none."""
    client = scope.get("client")
    address = client[0] if client else ""
    if address not in proxies:
        return address
    for hop in reversed(_forwarded(scope)):
        found = _parse(hop)
        if found is None:  # what stands before it was written by an unknown party
            break
        address = str(found)
        if address not in proxies:
            break
    return address


def client_network(address: str) -> str:
    """Return what counts as one client: an IPv4 address, or the /64 of an IPv6 address."""
    found = _parse(address)
    if isinstance(found, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((int(found), IPV6_CLIENT_BITS), strict=False))
    return address if found is None else str(found)


def _forwarded(scope: Scope) -> list[str]:
    values = [value for name, value in scope["headers"] if name == FORWARDED]
    return b",".join(values).decode("latin-1").split(",")[-PROXIES_MAX:]


def _parse(text: str) -> Address | None:
    """Read an address, with or without a port; an IPv4 address written as IPv6 is IPv4."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    if isinstance(found, ipaddress.IPv6Address):
        mapped = found.ipv4_mapped
        return mapped if mapped is not None else ipaddress.IPv6Address(int(found))
    return found
