"""The engine: what a container may do, what is read of its output, and how it ends."""

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.container_engine import IMAGE, Engine

from ade.agents.containers.engine import ContainerEngine, ContainerState, was_out_of_memory
from ade.agents.containers.order import IMAGE_UNAVAILABLE, ContainerError, Order
from ade.agents.containers.rules import CreateRequest, HostRules, create_request
from ade.domain.ids import is_uuid
from ade.kinds.container import ContainerInputs

JOB = "01900000-0000-7000-8000-00000000000a"
assert is_uuid(JOB)


def request(script: str, rules: HostRules | None = None, **inputs: Any) -> CreateRequest:
    """Ask for a container that runs a script."""
    asked = ContainerInputs(image=IMAGE, command=["/bin/sh", "-c", script], **inputs)
    order = Order(JOB, 1, "token", asked, "ade-test-engine")
    return create_request(order, rules or HostRules("agent-of-engine-tests"))


async def run(
    engine: ContainerEngine,
    created: CreateRequest,
    sink: Callable[[bytes], None],
    acts: Callable[[str], Any] | None = None,
) -> ContainerState:
    """Run a container to its end and remove it."""
    container = await engine.create(created)
    try:
        attached = await engine.attach(container)
        await engine.start(container)
        reading = asyncio.create_task(engine.read_output(attached, sink))
        if acts is not None:
            await acts(container)
        assert await reading
        state = await engine.wait(container)
        assert state is not None
        return state
    finally:
        await engine.remove(container)


async def said(engine: ContainerEngine, created: CreateRequest) -> tuple[str, ContainerState]:
    """Run a container and return what it wrote."""
    pieces: list[bytes] = []
    state = await run(engine, created, pieces.append)
    return b"".join(pieces).decode(), state


async def test_both_streams_and_the_exit_code_come_back(engine: ContainerEngine) -> None:
    text, state = await said(engine, request("echo one; echo two >&2; exit 4"))
    assert text == "one\ntwo\n"
    assert (state.exit_code, state.is_running, state.was_started) == (4, False, True)


async def test_a_container_may_do_little(engine: ContainerEngine) -> None:
    script = """
        B=/bin/busybox
        $B grep -E 'CapEff|NoNewPrivs|Seccomp:' /proc/self/status
        $B ip link | $B grep -c mtu
        (echo x > /file) 2>/dev/null || echo read-only
        echo x > /tmp/file && echo tmp
        $B id -u
        echo $SECRET
    """
    text, state = await said(engine, request(script, user="1000:1000", env={"SECRET": "s"}))
    assert state.exit_code == 0, text
    lines = [line.split() for line in text.splitlines()]
    assert lines[0] == ["CapEff:", "0000000000000000"]
    assert lines[1:3] == [["NoNewPrivs:", "1"], ["Seccomp:", "2"]]
    assert lines[3:] == [["1"], ["read-only"], ["tmp"], ["1000"], ["s"]]


async def test_all_that_a_fast_writer_writes_arrives(engine: ContainerEngine) -> None:
    script = "/bin/busybox seq 1 2000000"
    digest, size = hashlib.sha256(), 0

    def sink(piece: bytes) -> None:
        nonlocal size
        size += len(piece)
        digest.update(piece)

    await run(engine, request(script), sink)
    right = b"".join(b"%d\n" % number for number in range(1, 2_000_001))
    assert (size, digest.hexdigest()) == (len(right), hashlib.sha256(right).hexdigest())


async def test_the_kept_output_completes_what_was_read(engine: ContainerEngine) -> None:
    script = "/bin/busybox seq 1 100000; /bin/busybox printf '%050000d\\377\\0\\nno end' 7"
    container = await engine.create(request(script))
    await engine.start(container)
    await engine.wait(container)
    pieces: list[bytes] = []
    await engine.kept_output(container, 4, pieces.append)
    await engine.remove(container)
    numbers = b"".join(b"%d\n" % number for number in range(3, 100_001))
    assert b"".join(pieces) == numbers + b"7".rjust(50_000, b"0") + b"\xff\0\nno end"


HEEDS = "trap 'echo bye; exit 7' TERM; echo up; while :; do /bin/busybox sleep 0.1; done"
DEAF = "trap '' TERM; echo up; while :; do /bin/busybox sleep 0.1; done"


@pytest.mark.parametrize(
    ("script", "grace_seconds", "exit_code", "text"),
    [(HEEDS, 60, 7, b"up\nbye\n"), (DEAF, 1, 137, b"up\n")],
)
async def test_a_stop_is_sigterm_and_then_sigkill(
    engine: ContainerEngine, script: str, grace_seconds: float, exit_code: int, text: bytes
) -> None:
    pieces: list[bytes] = []
    is_up = asyncio.Event()
    loop = asyncio.get_running_loop()

    def sink(piece: bytes) -> None:
        pieces.append(piece)
        loop.call_soon_threadsafe(is_up.set)

    async def stop(container: str) -> None:
        await is_up.wait()
        await engine.stop(container, grace_seconds)

    state = await run(engine, request(script), sink, stop)
    assert (state.exit_code, b"".join(pieces)) == (exit_code, text)


async def test_more_than_the_memory_limit_is_told_as_such(engine: ContainerEngine) -> None:
    script = "x=$(/bin/busybox yes | /bin/busybox head -c 100000000)"
    created = request(script, resources={"memory_bytes": 16 * 2**20})
    _, state = await said(engine, created)
    assert was_out_of_memory(state, has_limit=created.has_memory_limit, was_stopped=False)
    assert not was_out_of_memory(
        replace(state, out_of_memory=False), has_limit=True, was_stopped=True
    )


async def test_the_reason_of_an_image_that_cannot_be_fetched(engine: ContainerEngine) -> None:
    await engine.ensure_image(IMAGE, "missing")
    with pytest.raises(ContainerError) as never:
        await engine.ensure_image("localhost/ade-nothing:1", "never")
    with pytest.raises(ContainerError) as refused:
        await engine.ensure_image("127.0.0.1:9/ade-nothing:1", "missing")
    with pytest.raises(ContainerError) as impossible:  # or the slot would be lost for good
        await engine.ensure_image("http://127.0.0.1:9/ade-nothing", "always")
    assert never.value.code == refused.value.code == IMAGE_UNAVAILABLE
    assert impossible.value.code == IMAGE_UNAVAILABLE
    assert "connection refused" in refused.value.message


async def test_a_command_that_is_not_there_leaves_no_container(
    engine: ContainerEngine, podman: Engine
) -> None:
    created = replace(request(""), command=["/nothing"])
    container = await engine.create(created)
    with pytest.raises(ContainerError) as refused:
        await engine.start(container)
    assert "could not be started" in refused.value.message
    again = await engine.create(request("exit 3"))  # what was left of the name is removed
    assert again != container
    await engine.remove(again)
    assert podman.all() == []


async def test_the_container_of_another_owner_is_left_alone(
    engine: ContainerEngine, podman: Engine
) -> None:
    podman.podman("create", "--name", "ade-test-engine", IMAGE, "/bin/sh")
    with pytest.raises(ContainerError) as refused:
        await engine.create(request("exit 0"))
    assert "on this host already" in refused.value.message
    podman.podman("rm", "-f", "ade-test-engine")


async def test_podman_gives_no_gpu_and_does_not_pretend_to(engine: ContainerEngine) -> None:
    rules = HostRules("agent-of-engine-tests", gpus=1)
    with pytest.raises(ContainerError, match="Podman"):
        await engine.create(request("true", rules, resources={"gpus": 1}))


async def test_containers_are_found_by_the_agent(engine: ContainerEngine) -> None:
    container = await engine.create(request("exit 0"))
    (found,) = await engine.find_all("agent-of-engine-tests")
    assert found.id == container
    assert (found.labels["ade.job"], found.labels["ade.attempt"]) == (JOB, "1")
    assert await engine.find_all("agent-of-engine") == []
    state = await engine.state(container)
    assert state is not None
    assert not state.was_started
    await engine.remove(container)
    await engine.remove(container)
    assert await engine.state(container) is None


async def test_a_volume_is_seen(engine: ContainerEngine, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("given")
    volumes = [{"host": str(tmp_path), "container": "/data", "mode": "rw"}]
    rules = HostRules("agent-of-engine-tests", folders=(tmp_path,))
    script = "read -r line < /data/in; echo $line; echo left > /data/out"
    text, _ = await said(engine, request(script, rules, volumes=volumes))
    assert text == "given\n"
    assert (tmp_path / "out").read_text() == "left\n"
