"""One key or one workspace cannot take what all share."""

import asyncio
from typing import Any

import pytest
from tests.api.conftest import Serve

from ade.domain.errors import TooManyRequests, Unavailable
from ade.domain.job import Status
from ade.domain.outcome import Outcome
from ade.http.auth import Authorization, Principal, Role
from ade.http.fair_share import FairShare, Shares
from ade.store.rows import KeyHolder, Workspace

PREVIEWED = {"sheet": "a", "sheets": [], "rows": []}


def holder(key: str, workspace: str) -> Authorization:
    held = KeyHolder(key, "user", "name", False, None, None, {})
    return Authorization(
        Principal(held), Workspace(workspace, workspace, workspace, 0), Role.VIEWER
    )


def test_a_key_and_a_workspace_have_a_share() -> None:
    shares = FairShare("things", Shares(total=4, per_workspace=3, per_key=2))
    first, second = holder("k1", "w1"), holder("k2", "w1")
    for auth in (first, first, second):
        shares.enter(auth)
    with pytest.raises(TooManyRequests, match="This key"):
        shares.enter(first)
    with pytest.raises(TooManyRequests, match="This workspace"):
        shares.enter(second)
    shares.leave(first)
    shares.enter(second)


def test_a_workspace_that_has_none_gets_one_when_all_are_taken() -> None:
    shares = FairShare("things", Shares(total=2, per_workspace=2, per_key=2))
    greedy, other, third = holder("k1", "w1"), holder("k2", "w2"), holder("k3", "w3")
    shares.enter(greedy)
    shares.enter(greedy)
    shares.enter(other)
    with pytest.raises(Unavailable):
        shares.enter(other)
    shares.enter(third)
    with pytest.raises(Unavailable):  # there are at most as many again
        shares.enter(holder("k4", "w4"))
    for auth in (greedy, greedy, other, third):
        shares.leave(auth)
    assert not shares._keys
    assert not shares._workspaces


class HeldTasks:
    """Run inline tasks that take until they are let go."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.let_go = asyncio.Event()

    async def run(self, *_: Any) -> Outcome:
        self.begun.set()
        await self.let_go.wait()
        return Outcome(Status.SUCCEEDED, {"outputs": {"result_json": PREVIEWED}})


async def test_a_key_has_a_share_of_the_previews(serve: Serve) -> None:
    tasks = HeldTasks()
    server = await serve(inline_tasks=tasks, inline_tasks_per_key=1)
    documents = "/api/v1/workspaces/default/documents"
    made = await server.http.post(documents, files={"file": ("a.csv", b"a,b\n1,2\n")})
    preview = f"{documents}/{made.json()['document_id']}/preview"
    first = asyncio.create_task(server.http.get(preview))
    await tasks.begun.wait()
    refused = await server.http.get(preview)
    assert (refused.status_code, refused.json()["code"]) == (429, "too_many_requests")
    assert refused.headers["retry-after"]
    key = await server.http.post("/api/v1/workspaces/default/keys", json={"label": "other"})
    async with server.client(key.json()["key"]) as other:
        tasks.begun.clear()
        second = asyncio.create_task(other.get(preview))
        await tasks.begun.wait()
        tasks.let_go.set()
        assert 429 not in {(await first).status_code, (await second).status_code}
