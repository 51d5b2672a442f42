"""Call an ADE server from Python.

    from ade.client import Client

    with Client("http://127.0.0.1:8000", "ade_...") as client:
        client.runs.start("roster.xlsx", configuration="members").wait().output("out.xlsx")
        client.cells.run("def main(price, count): return price * count", price=21, count=2).value

`AsyncClient` is the same for asyncio. Importing this costs little: httpx is imported when the first
client is made.
"""

from typing import TYPE_CHECKING, Any

from ade.client import errors as errors
from ade.client.core.retry import RetryPolicy
from ade.client.errors import *  # noqa: F403
from ade.client.sync.client import Client

if TYPE_CHECKING:
    from ade.client.aio.client import AsyncClient

__all__ = ["AsyncClient", "Client", "RetryPolicy", "errors"]


def __getattr__(name: str) -> Any:
    """Import what asyncio needs when it is asked for."""
    if name == "AsyncClient":
        from ade.client.aio.client import AsyncClient

        return AsyncClient
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
