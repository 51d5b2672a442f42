"""Serve the HTTP API over the parts of this process, until a signal stops it."""

import asyncio
import resource
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import uvicorn

from ade.app.directory import Directory
from ade.domain.errors import Unavailable
from ade.domain.scaler_state import ScalerState, trouble
from ade.http import create_app
from ade.http.client_address import LOOPBACK, Networks, is_loopback
from ade.http.health import Component, HealthStatus, Probe
from ade.process.compose import Parts, Pilot, running
from ade.process.connection_limits import ConnectionRules, Connections
from ade.process.readiness import WriteProbe
from ade.process.watchdog import ENDING_SECONDS, Watchdog
from ade.settings import Settings
from ade.worker.inline_tasks import InlineTasks

BACKLOG = 2048
# Streams never end by themselves: after this they are cut, and their readers resume elsewhere.
CONNECTIONS_GRACE_SECONDS = 3
SWEEPS_MISSED_MAX = 5
# Whoever starts a server for the first time may open the link only after having set up a proxy.
FIRST_LINK_SECONDS = 24 * 3600
DESCRIPTORS_KEPT = 200
CONNECTIONS_MIN = 10


class SignalFreeServer(uvicorn.Server):
    """Leave signals to the process: its jobs must end before it does.

    uvicorn would send itself the signal again once the connections have closed.
    """

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture nothing."""
        yield

    def close(self) -> None:
        """Take no more connections; called a second time, do not wait for those that are open."""
        self.force_exit = self.should_exit
        self.should_exit = True


def bind(settings: Settings) -> socket.socket:
    """Bind the port, or exit with a message that names it."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server(
            (settings.host, settings.port), family=family, backlog=BACKLOG, reuse_port=False
        )
    except OSError as error:
        raise Unavailable(
            f"Cannot listen on {settings.host}:{settings.port}: {error.strerror}."
            " Choose another with ADE_HOST and ADE_PORT."
        ) from None


def allow_descriptors(wanted: int) -> int:
    """Raise the soft limit on open files to what is wanted, if the hard limit allows it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return soft
    raised = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
    return raised


def connection_rules(settings: Settings) -> ConnectionRules:
    """Return the limits of connections, which leave some descriptors for everything else."""
    connections_max = settings.connections_max
    descriptors_max = allow_descriptors(connections_max + DESCRIPTORS_KEPT)
    if descriptors_max != resource.RLIM_INFINITY:
        room = max(descriptors_max - DESCRIPTORS_KEPT, CONNECTIONS_MIN)
        connections_max = min(connections_max, room)
    return ConnectionRules(
        connections_max=connections_max,
        per_address_max=settings.connections_per_address,
        head_seconds=settings.head_seconds,
        stall_seconds=settings.stall_seconds,
        idle_seconds=settings.keep_alive_seconds,
        uncounted=Networks((*LOOPBACK, *settings.trusted_proxies)),
    )


def link(settings: Settings, port: int, token: str | None) -> str:
    """Return the address of this server; with a one-time token in it, it signs its reader in."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    address = (settings.public_url or f"http://{host}:{port}").rstrip("/")
    return f"{address}/" + (f"?token={token}" if token else "")


async def serve(
    settings: Settings,
    ready: Callable[[str, str | None], None],
    *,
    works: bool = True,
    hears_signals: bool = True,
) -> None:
    """Serve until SIGTERM or SIGINT.

    `ready` is called once jobs are accepted, with the link and the first key, if one was made.
    """
    with bind(settings) as listening:
        port = listening.getsockname()[1]
        async with running(settings, works=works) as parts:
            directory = Directory(parts.store)
            key = _first_key(settings, directory)
            token = directory.user_sessions().make_link(FIRST_LINK_SECONDS) if key else None
            app = create_app(
                parts.kernel,
                directory,
                settings,
                parts.kinds,
                catalogue=parts.catalogue,
                blobs=parts.blobs,
                shared_folder=parts.shared_folder,
                inline_tasks=InlineTasks(parts.isolation.runner, settings.inline_tasks)
                if parts.isolation
                else None,
                health_probes=_probes(settings, parts),
            )
            connections = Connections(connection_rules(settings))
            config = uvicorn.Config(
                app,
                http=connections.protocol,  # type: ignore[arg-type]  # it calls it as a class
                ws="none",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                lifespan="off",
                timeout_graceful_shutdown=CONNECTIONS_GRACE_SECONDS,
            )
            server = SignalFreeServer(config)
            if hears_signals:
                on_signals(settings, app.drain, lambda: _drain(parts), server.close)
            mirroring = asyncio.create_task(app.mirror.run(), name="mirror of agents' jobs")
            try:
                ready(link(settings, port, token), key)
                await server.serve(sockets=[listening])
            finally:
                mirroring.cancel()
                await asyncio.gather(mirroring, return_exceptions=True)


def on_signals(settings: Settings, *calls: Callable[[], None]) -> None:
    """Call these for each signal to end, as long as the loop lives: also while it drains."""
    loop = asyncio.get_running_loop()
    watchdog = Watchdog(settings.drain_grace_seconds + ENDING_SECONDS, loop)

    def end() -> None:
        for call in calls:
            call()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end)
        # The loop runs `end`. The handler itself runs also while the loop is held up.
        signal.signal(number, lambda *_: watchdog.arm())
        signal.siginterrupt(number, False)


def _drain(parts: Parts) -> None:
    if parts.worker is not None:
        parts.worker.drain()


def _first_key(settings: Settings, directory: Directory) -> str | None:
    given = settings.bootstrap_api_key
    if given is None and not is_loopback(settings.host) and not directory.has_keys():
        raise Unavailable(
            f"ADE_HOST={settings.host} can be reached from other machines, and there is no API key"
            " yet. Set ADE_BOOTSTRAP_API_KEY, or start once on 127.0.0.1."
        )
    return directory.bootstrap(given.get_secret_value() if given is not None else None)


def _probes(settings: Settings, parts: Parts) -> Mapping[str, Probe]:
    worker, sweeper = parts.worker, parts.sweeper

    def worker_pool() -> Component:
        if worker is None:
            return Component("degraded", "Nothing is run by this process.")
        return Component("ok", f"{worker.running} of {worker.slots} slots are busy.")

    def sweeping() -> Component:
        age = sweeper.age_seconds
        if age is None or age > SWEEPS_MISSED_MAX * settings.sweep_seconds + 1:
            return Component("degraded", "The last sweep is overdue; lost jobs wait longer.")
        return Component("ok", f"The last sweep was {age:.1f} s ago.")

    def isolation() -> Component:
        if parts.isolation is None:
            return Component("ok", "Nothing is run by this process.")
        status: HealthStatus = "degraded" if parts.isolation.is_degraded else "ok"
        return Component(status, parts.isolation.summary)

    def notifications() -> Component:
        if parts.listener is None:
            return Component("ok", "The database sends none; this process is the only one.")
        if parts.listener.is_missed:
            return Component("degraded", "None arrive; changes of others are found by polling.")
        return Component("ok", "They arrive.")

    async def scalers() -> Component:
        rows = await parts.kernel.read(lambda reading: reading.list_scalers())
        now = parts.store.clock.now_us()
        states = {row.name: (row, ScalerState.from_json(row.state)) for row in rows}
        wrong = [trouble(n, s, row.lease_expires_at, now) for n, (row, s) in states.items()]
        if any(wrong):
            return Component("degraded", " ".join(filter(None, wrong)))
        return Component("ok", "They can order blocks." if rows else "There are none.")

    return {
        "database": WriteProbe(parts.store),
        "worker-pool": worker_pool,
        "sweeper": sweeping,
        "isolation": isolation,
        "notifications": notifications,
        "scalers": scalers,
    }


async def work(
    settings: Settings, ready: Callable[[str], None], pilot: Pilot | None = None
) -> None:
    """Run jobs without an HTTP API until SIGTERM or SIGINT, or until a pilot has to leave."""
    ended = asyncio.Event()
    async with running(settings, pilot=pilot) as parts:
        on_signals(settings, lambda: _drain(parts), ended.set)
        ready(parts.worker.name if parts.worker is not None else "safe mode: nothing is run")
        await (ended.wait() if parts.worker is None else parts.worker.until_draining())
