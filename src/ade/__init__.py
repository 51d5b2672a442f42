"""A Durable Executor."""

from typing import TYPE_CHECKING, Any

from ade.version import __version__

if TYPE_CHECKING:
    from ade.client import AsyncClient, Client

__all__ = ["AsyncClient", "Client", "__version__"]


def __getattr__(name: str) -> Any:
    """Import the client when it is asked for: every process of ADE imports this module."""
    if name in ("AsyncClient", "Client"):
        from ade import client

        return getattr(client, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
