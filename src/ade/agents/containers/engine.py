"""The container engine of this host, Docker or Podman, by the Docker Engine API on its socket.

The model. Each call runs in a thread of its own pool, with a client that belongs to that thread.
A container is created, attached to, and then started: what is attached later misses the first
lines, and reading the log of a fast writer while it grows loses output. It is never removed by the
engine itself, which then forgets the exit code: it is removed once its end is on disk.

    failure                                 what happens
    --------------------------------------  ------------------------------------------------------
    the engine does not answer              ContainerEngineAway; the caller tries again
    it answers with an error                ContainerError with its message; what was created for
                                            an attempt is removed
    the connection of the output is cut     the rest is read from the engine's own log at the end
    `OOMKilled` is false after such a kill  exit code 137, a memory limit and no stop of ours count
"""

import asyncio
import contextlib
import io
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from ade.agents.containers.order import IMAGE_UNAVAILABLE, NOT_STARTED, ContainerError
from ade.agents.containers.rules import AGENT_LABEL, CreateRequest, attempt_of

CALL_SECONDS = 60.0
READ_BYTES = 256 * 1024
HEAD_BYTES = 8  # of a frame: the stream, three zeros, and the size
KILLED = 137
WAIT_SECONDS = 25.0
MESSAGE_CHARS_MAX = 500
Value = TypeVar("Value")
Sink = Callable[[bytes], None]


class ContainerEngineAway(Exception):
    """The engine does not answer."""


class FoundContainer(NamedTuple):
    """Name a container of this agent that exists."""

    id: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ContainerState:
    """Say how a container is."""

    is_running: bool
    was_started: bool
    exit_code: int
    out_of_memory: bool
    error: str


class ContainerEngine:
    """Call the engine."""

    def __init__(self, url: str, threads_max: int = 64) -> None:
        self._url = url
        self._threads = ThreadPoolExecutor(threads_max, thread_name_prefix="ade-engine")
        self._local = threading.local()
        self._clients = list[Any]()

    def close(self) -> None:
        """Let go of the threads and their connections."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for client in self._clients:
            client.close()

    async def _call(self, work: Callable[[Any], Value], *, seconds: float = CALL_SECONDS) -> Value:
        """Run calls to the engine in a thread.

        Raise ContainerEngineAway if it does not answer, and ContainerError if it answers with
        an error.
        """

        def run() -> Value:
            import docker

            try:
                return work(self._client(seconds))
            except docker.errors.APIError as error:
                raise ContainerError(f"The container engine: {_said(error)}") from None
            except ContainerError:
                raise
            except (
                docker.errors.InvalidArgument,
                docker.errors.InvalidRepository,
                docker.errors.InvalidVersion,
                docker.errors.NullResource,
            ) as error:  # the client refuses the request, now and ever
                raise ContainerError(f"The container engine: {_said(error)}") from None
            except Exception as error:
                raise ContainerEngineAway(
                    f"The container engine does not answer: {_said(error)}"
                ) from None

        return await asyncio.get_running_loop().run_in_executor(self._threads, run)

    def _client(self, seconds: float) -> Any:
        import docker

        client = getattr(self._local, "client", None)
        if client is None:
            client = docker.APIClient(base_url=self._url, version="auto", timeout=CALL_SECONDS)
            self._local.client = client
            self._clients.append(client)
        client.timeout = seconds
        return client

    async def version(self) -> str:
        """Name the engine and its version."""
        found = await self._call(lambda client: client.version())
        parts = found.get("Components") or [{}]
        return f"{parts[0].get('Name') or 'Engine'} {found.get('Version')}"

    async def ensure_image(self, image: str, pull: str) -> None:
        """Fetch an image as its policy says, or raise ContainerError with why it cannot be."""

        def work(client: Any) -> None:
            if pull != "always" and _has_image(client, image):
                return
            if pull == "never":
                raise ContainerError(
                    f"The image {image} is not on this host, and may not be fetched.",
                    IMAGE_UNAVAILABLE,
                )
            _pull(client, image)

        await self._call(work, seconds=3600)

    async def create(self, request: CreateRequest) -> str:
        """Create a container and return its id, or raise ContainerError with the engine's reason.

        One of the same name that this agent made for an attempt that is over is removed first.
        """

        def work(client: Any) -> str:
            if "device_requests" in request.host and _is_podman(client):
                raise ContainerError(
                    "This host runs Podman, which would ignore the request for GPUs."
                )
            _remove_same_name(client, request)
            with _engine_reason("The container could not be created"):
                made = client.create_container(
                    image=request.image,
                    command=request.command,
                    environment=request.environment,
                    user=request.user,
                    labels=request.labels,
                    name=request.name,
                    host_config=_host_config(client, request.host),
                )
            return str(made["Id"])

        return await self._call(work)

    async def attach(self, container: str) -> "Attached":
        """Connect to the output of a container that is not started yet."""

        def work(client: Any) -> Attached:
            params = {"stdout": 1, "stderr": 1, "stream": 1}
            return Attached(client.attach_socket(container, params))

        return await self._call(work)

    async def read_output(self, attached: "Attached", sink: Sink) -> bool:
        """Pass on what a container writes until it closes its output; False if it was cut."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, attached.read_to_end, sink)

    async def start(self, container: str) -> None:
        """Start a container, or raise ContainerError with the engine's reason."""

        def work(client: Any) -> None:
            with _engine_reason("The container could not be started"):
                client.start(container)

        await self._call(work)

    async def state(self, container: str) -> ContainerState | None:
        """Say how a container is; None if it is not there."""

        def work(client: Any) -> ContainerState | None:
            import docker

            try:
                found = client.inspect_container(container)["State"]
            except docker.errors.NotFound:
                return None
            started_at = str(found.get("StartedAt") or "")
            return ContainerState(
                is_running=bool(found["Running"]),
                was_started=bool(started_at) and not started_at.startswith("0001-"),
                exit_code=int(found["ExitCode"]),
                out_of_memory=bool(found.get("OOMKilled")),
                error=str(found.get("Error") or ""),
            )

        return await self._call(work)

    async def wait(self, container: str) -> ContainerState | None:
        """Wait until a container has ended; None if it is not there any more."""
        while True:
            state = await self.state(container)
            if state is None or not state.is_running:
                return state
            # The engine's wait has a limit, too.
            with contextlib.suppress(ContainerEngineAway, ContainerError):
                await self._call(lambda client: client.wait(container), seconds=WAIT_SECONDS)

    async def stop(self, container: str, grace_seconds: float) -> None:
        """End a container by SIGTERM, and by SIGKILL after the grace period."""

        def work(client: Any) -> None:
            import docker

            try:
                client.stop(container, timeout=int(grace_seconds))
            except docker.errors.NotFound:
                return
            except docker.errors.APIError:  # also the answer for one that has ended
                with contextlib.suppress(docker.errors.APIError):
                    client.kill(container)

        await self._call(work, seconds=grace_seconds + CALL_SECONDS)

    async def kept_output(self, container: str, skip_bytes: int, sink: Sink) -> None:
        """Pass on what the engine's own log holds of an ended container, after so many bytes."""

        def work(client: Any) -> None:
            skip = skip_bytes
            # Without `follow=False` a stream follows, and Podman then loses output.
            asked = {"stdout": True, "stderr": True, "stream": True, "follow": False}
            for piece in client.logs(container, **asked):
                if new := piece[skip:]:
                    sink(new)
                skip = max(skip - len(piece), 0)

        await self._call(work, seconds=600)

    async def remove(self, container: str) -> None:
        """Remove a container, also one that runs; one that is gone is no error."""

        def work(client: Any) -> None:
            import docker

            with contextlib.suppress(docker.errors.NotFound):
                client.remove_container(container, force=True, v=True)

        await self._call(work)

    async def find_all(self, agent: str) -> list[FoundContainer]:
        """List the containers of an agent, also those that have ended."""

        def work(client: Any) -> list[FoundContainer]:
            filters = {"label": [f"{AGENT_LABEL}={agent}"]}
            found = client.containers(all=True, filters=filters)
            return [FoundContainer(str(one["Id"]), one.get("Labels") or {}) for one in found]

        return await self._call(work)


class Attached:
    """Hold the connection on which the output of one container comes."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        inner: socket.socket | None = getattr(connection, "_sock", None)
        if inner is not None:
            inner.settimeout(None)  # a container may write nothing for hours
        self._socket = inner

    def read_to_end(self, sink: Sink) -> bool:
        """Pass on the frames of both streams in order; False if the last one is not whole."""
        file = io.BufferedReader(self._connection, READ_BYTES)
        try:
            while head := _exactly(file, HEAD_BYTES):
                left = int.from_bytes(head[4:], "big")
                while left:
                    piece = file.read1(min(left, READ_BYTES))
                    if not piece:
                        return False
                    sink(piece)
                    left -= len(piece)
        except (OSError, ValueError):
            return False
        finally:
            self.close()
        return True

    def close(self) -> None:
        """Close the connection; whoever reads it sees its end."""
        with contextlib.suppress(OSError):
            if self._socket is not None:
                self._socket.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(OSError):
            self._connection.close()
        with contextlib.suppress(OSError):
            if self._socket is not None:
                self._socket.close()


def _exactly(file: io.BufferedReader, size_bytes: int) -> bytes:
    head = file.read(size_bytes) or b""
    if head and len(head) < size_bytes:
        raise ValueError("the frame is cut")
    return head


def was_out_of_memory(state: ContainerState, *, has_limit: bool, was_stopped: bool) -> bool:
    """Tell whether a container was probably killed for its memory; engines may not say so."""
    return state.out_of_memory or (state.exit_code == KILLED and has_limit and not was_stopped)


def _is_podman(client: Any) -> bool:
    """Tell whether the engine accepts requests for GPUs and ignores them."""
    return any("podman" in one["Name"].lower() for one in client.version().get("Components") or ())


def _has_image(client: Any, image: str) -> bool:
    import docker

    try:
        client.inspect_image(image)
    except docker.errors.NotFound:
        return False
    return True


def _pull(client: Any, image: str) -> None:
    """Fetch an image; the reason of a failure is in the stream of its progress only."""
    import docker

    name, tag = docker.utils.parse_repository_tag(image)
    try:
        for line in client.pull(name, tag or "latest", stream=True, decode=True):
            if reason := line.get("error"):
                raise _no_image(image, str(reason))
    except (docker.errors.APIError, docker.errors.InvalidRepository) as error:
        raise _no_image(image, _said(error)) from None
    if not _has_image(client, image):
        raise _no_image(image, "the engine fetched it and does not know it")


def _no_image(image: str, reason: str) -> ContainerError:
    said = reason[:MESSAGE_CHARS_MAX]
    return ContainerError(f"The image {image} cannot be fetched: {said}.", IMAGE_UNAVAILABLE)


def _host_config(client: Any, host: dict[str, Any]) -> Any:
    import docker

    given = dict(host)
    given["ulimits"] = [docker.types.Ulimit(**one) for one in host["ulimits"]]
    given["log_config"] = docker.types.LogConfig(**host["log_config"])
    if "device_requests" in host:
        requests = host["device_requests"]
        given["device_requests"] = [docker.types.DeviceRequest(**one) for one in requests]
    return client.create_host_config(**given)


def _remove_same_name(client: Any, request: CreateRequest) -> None:
    import docker

    try:
        labels = client.inspect_container(request.name)["Config"].get("Labels") or {}
    except docker.errors.NotFound:
        return
    if labels.get(AGENT_LABEL) != request.labels[AGENT_LABEL]:
        raise ContainerError(f"There is a container {request.name!r} on this host already.")
    is_same = attempt_of(labels) == attempt_of(request.labels)
    if not is_same and client.inspect_container(request.name)["State"]["Running"]:
        raise ContainerError(f"Another job of this agent runs as {request.name!r}.")
    client.remove_container(request.name, force=True, v=True)


@contextlib.contextmanager
def _engine_reason(what: str) -> Iterator[None]:
    """Raise ContainerError with what the engine says; one that is away is another matter."""
    import docker

    try:
        yield
    except docker.errors.APIError as error:
        raise ContainerError(f"{what}: {_said(error)}", NOT_STARTED) from None


def _said(error: Any) -> str:
    return str(getattr(error, "explanation", None) or error)[:MESSAGE_CHARS_MAX]
