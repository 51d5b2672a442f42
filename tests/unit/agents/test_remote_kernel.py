"""What a remote kernel holds decides whether its claims wait."""

import json

import httpx
import pytest

from ade.agents.remote_kernel import RemoteKernel
from ade.clock import SystemClock
from ade.domain.errors import LeaseLost
from ade.stages.claim import ClaimRequest
from ade.store.rows import Claim, LeaseRef

LEASE = {"lease_seconds": 15.0, "margin_seconds": 3.0, "renew_seconds": 4.0}
CLAIM = Claim("w", "j", "echo", 1, 0, None, 0, None, "{}", "")
HELD = LeaseRef("w", "j", 1)


class Clock(SystemClock):
    """Go on when the test says."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 0.0

    def monotonic(self) -> float:
        """Return the time."""
        return self.seconds


class Wire(httpx.AsyncBaseTransport):
    """Answer claims with one job, once, and renewals with what the test says."""

    def __init__(self) -> None:
        self.claims = [list(CLAIM)]
        self.renewed: list[list[None] | None] = [[None]]
        self.waits: list[str | None] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Answer."""
        if request.url.path.endswith("/renewals"):
            return httpx.Response(200, json={"lease": LEASE, "renewed": self.renewed})
        assert json.loads(await request.aread())["kinds"] == ["echo"]
        self.waits.append(request.headers.get("prefer"))
        answer, self.claims = self.claims, []
        return httpx.Response(200, json={"lease": LEASE, "claims": answer})


@pytest.fixture
def wire() -> Wire:
    return Wire()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def kernel(wire: Wire, clock: Clock) -> RemoteKernel:
    return RemoteKernel(httpx.AsyncClient(transport=wire, base_url="http://ade"), clock)


async def claim(kernel: RemoteKernel) -> list[Claim]:
    return await kernel.claim(ClaimRequest("a", 1, kinds=frozenset({"echo"})))


async def test_a_claim_waits_only_while_nothing_is_held(kernel: RemoteKernel, wire: Wire) -> None:
    assert await claim(kernel) == [CLAIM]
    await kernel.renew([HELD])
    assert await claim(kernel) == []
    assert wire.waits == ["wait=3", None]


async def test_a_lost_lease_is_not_held(kernel: RemoteKernel, wire: Wire) -> None:
    await claim(kernel)
    wire.renewed = [None]
    (answer,) = await kernel.renew([HELD])
    assert isinstance(answer, LeaseLost)
    await claim(kernel)
    assert wire.waits[1] == "wait=6"


async def test_what_was_given_up_is_not_held_for_ever(
    kernel: RemoteKernel, wire: Wire, clock: Clock
) -> None:
    await claim(kernel)
    await kernel.renew([])
    await claim(kernel)
    clock.seconds = 16
    await kernel.renew([])
    await claim(kernel)
    assert wire.waits[1:] == [None, "wait=6"]
