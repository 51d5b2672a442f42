"""Declare every setting once: name, unit, default, bound and what it does.

A value comes from the environment, else from ``.env`` in the working directory, else from the
default; an empty variable counts as not set. ``ade settings`` prints each value and its origin.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, PrivateAttr, ValidationError, model_validator

from ade.domain.network import NetworkRule
from ade.domain.units import DAY_SECONDS
from ade.settings_reader import (
    BlobUrl,
    DatabaseUrl,
    FirstKey,
    Folder,
    FolderOrNone,
    Host,
    Hosts,
    Image,
    LogFormat,
    LogLevel,
    Network,
    NetworksOrNone,
    ProxyNetworks,
    PublicUrl,
    Sandbox,
    Secret,
    Setting,
    SettingsError,
    env_file_source,
    environment_source,
    read_setting,
    setting,
    settings_of,
    unknown_variables,
)

__all__ = ["Settings", "SettingsError", "all_settings", "load_settings"]


def _default_database_url(above: dict[str, Any]) -> str:
    return f"sqlite:///{above['storage_data_dir'] / 'ade.db'}"


def _default_envs_dir(above: dict[str, Any]) -> Path:
    return above["storage_data_dir"] / "venvs"


class Settings(BaseModel):
    """Every setting of ADE; construct it directly in tests, by ``load_settings`` in programs."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, validate_default=True
    )

    # The server
    host: Host = setting("127.0.0.1", "Address that `ade serve` listens on.")
    port: int = setting(
        8000, "Port that `ade serve` listens on; 0 takes a free one.", "", (0, 65535)
    )
    bootstrap_api_key: FirstKey = setting(
        None, "First admin key; without it, the first start makes one and shows it once."
    )
    public_url: PublicUrl = setting(
        None,
        "Address that browsers use, such as that of a proxy with TLS in front of ADE. Signed links"
        " start with it. With `https`, cookies are sent over TLS only.",
    )
    session_idle_minutes: int = setting(
        720, "A browser that sends nothing for this long is signed out.", "minutes", (1, 43_200)
    )
    session_max_hours: int = setting(
        168, "A browser is signed out this long after it signed in.", "hours", (1, 8760)
    )
    trusted_proxies: ProxyNetworks = setting(
        (),
        "Proxies whose `X-Forwarded-` headers (`For`, `Proto`, `Host`) are believed; their address"
        " has no limit of connections.",
    )
    connections_max: int = setting(
        2000, "Connections that are open at once; more get 503.", "connections", (10, 1_000_000)
    )
    connections_per_address: int = setting(
        500,
        "Connections of one address (IPv6: /64), except this machine and trusted proxies.",
        "connections",
        (1, 1_000_000),
    )
    head_seconds: float = setting(
        20, "Time for the head of a request to arrive; then 408.", "seconds", (0.1, 3600)
    )
    stall_seconds: float = setting(
        60,
        "A body of which less than 1 KiB arrives, or an answer of which nothing is read, in this"
        " time ends its connection.",
        "seconds",
        (0.1, 3600),
    )
    keep_alive_seconds: float = setting(
        20,  # longer than the 5 s of common clients, which would send as the server closes
        "Time for which a connection without a request stays open.",
        "seconds",
        (0.1, 3600),
    )
    wrong_keys_per_minute: int = setting(
        20,
        "Keys that are not valid, of one address (IPv6: /64); more get 429. Valid keys still work.",
        "keys",
        (1, 1_000_000),
    )
    access_log: bool = setting(
        False, "Log a line for each request: route, status, duration, key id, address."
    )
    safe_mode: bool = setting(False, "Answer requests, but accept no jobs and run no user code.")
    log_format: LogFormat = setting(
        "auto", "Format of log lines; `auto` is `text` if stderr is a terminal, else `json`."
    )
    log_level: LogLevel = setting("info", "Least severity that is logged.")

    # Where things are kept
    storage_data_dir: Folder = setting(Path("data"), "Root of everything that ADE writes.")
    activation_envs_dir: Folder = setting(
        "<data>/venvs", "Root of the prepared environments.", derive=_default_envs_dir
    )
    database_url: DatabaseUrl = setting(
        "sqlite:///<data>/ade.db",
        "Database of all jobs; PostgreSQL for more than one process.",
        derive=_default_database_url,
        repr=False,  # it may hold a password
    )
    database_timeout_seconds: float = setting(
        10,
        "Time that PostgreSQL may take for one statement; then its connection is given up.",
        "seconds",
        (1, 600),
    )
    blob_url: BlobUrl = setting(
        None,
        "Object storage of documents, configurations and artifacts; without it, a folder.",
    )
    blob_cache_mb: int = setting(
        10_240,
        "Local copies of what is in object storage; beyond it the least recently used are removed.",
        "MiB",
        (0, 10**9),
    )
    retain_days: int = setting(
        30, "Keep ended jobs this long; 0 keeps them forever.", "days", (0, 36_500)
    )

    # Admission and order
    max_concurrency: int = setting(
        2,
        "Jobs that one server or worker process runs at once.",
        "jobs",
        (1, 1024),
        aliases=("ADE_QUEUE_MAX_CONCURRENCY",),
    )
    inline_tasks: int = setting(
        2,
        "Previews and checks that one server process runs at once, beside its jobs.",
        "tasks",
        (1, 64),
    )
    inline_tasks_per_key: int = setting(
        8, "Previews and checks of one key that run or wait; more get 429.", "tasks", (1, 1000)
    )
    streams_per_workspace: int = setting(
        500, "Event streams of one workspace; more get 429.", "streams", (1, 1_000_000)
    )
    streams_per_key: int = setting(
        100, "Event streams of one key; more get 429.", "streams", (1, 1_000_000)
    )
    queue_size: int = setting(
        10,
        "Jobs that may wait; 0 is unbounded. A full queue answers 429.",
        "jobs",
        (0, 10_000_000),
        aliases=("ADE_QUEUE_MAX_SIZE",),
    )
    workspace_queue_size: int = setting(
        0,
        "Jobs of one workspace that may wait; 0 means no limit but ADE_QUEUE_SIZE. More get 429.",
        "jobs",
        (0, 10_000_000),
    )
    priority_ageing_seconds: float = setting(
        300, "A job that waited this long counts one priority higher.", "seconds", (1, DAY_SECONDS)
    )
    idempotency_ttl_hours: int = setting(
        24, "Time for which an Idempotency-Key gives the same response.", "hours", (1, 720)
    )
    batch_max: int = setting(1000, "Jobs in one batch submission.", "jobs", (1, 10_000))
    page_size_max: int = setting(200, "Items on one page of a list.", "items", (1, 1000))
    payload_max_kb: int = setting(1024, "Size of one job's payload.", "KiB", (1, 102_400))
    upload_max_mb: int = setting(256, "Size of one uploaded file.", "MiB", (1, 102_400))
    workspace_storage_mb: int = setting(
        10_240,
        "Documents, configurations and artifacts of one workspace together; 0 is unbounded.",
        "MiB",
        (0, 10**9),
    )

    signed_url_seconds: int = setting(
        900, "How long a signed link to an artifact works.", "s", (1, 7 * 86_400)
    )

    # What one job may use, unless it asks for something else
    job_timeout_seconds: float = setting(
        300,
        "Wall clock of one attempt.",
        "seconds",
        (0.1, 30 * DAY_SECONDS),
        aliases=("ADE_RUN_TIMEOUT_SECONDS",),
    )
    build_timeout_seconds: float = setting(
        600,
        "Wall clock of one build.",
        "seconds",
        (0.1, DAY_SECONDS),
        variable="ADE_BUILD_TIMEOUT",
        aliases=("ADE_BUILD_TIMEOUT_SECONDS",),
    )
    container_timeout_seconds: float = setting(
        DAY_SECONDS,
        "Wall clock of one container, from its start.",
        "seconds",
        (0.1, 365 * DAY_SECONDS),
    )
    worker_cpu_seconds: int = setting(
        60, "CPU time of one attempt.", "seconds", (1, 30 * DAY_SECONDS)
    )
    worker_mem_mb: int = setting(512, "Memory of one attempt.", "MiB", (16, 1_048_576))
    worker_fsize_mb: int = setting(
        100, "Size of one file that a job writes.", "MiB", (1, 1_048_576)
    )
    max_output_kb: int = setting(256, "Output of one job that is kept.", "KiB", (1, 1_048_576))
    max_artifacts: int = setting(50, "Artifacts of one job.", "artifacts", (0, 100_000))
    result_max_kb: int = setting(1024, "Size of one job's result.", "KiB", (1, 102_400))
    events_per_job_max: int = setting(10_000, "Events kept per job.", "events", (100, 1_000_000))
    artifact_headers: bool = setting(True, "Record header texts in artifacts and events of runs.")
    runtime_network_access: Network = setting(
        NetworkRule.NEVER,
        "Which jobs get network access: none, those that ask, or all but those that decline.",
    )
    wheelhouse: FolderOrNone = setting(None, "Folder of wheels, to install without a registry.")
    index_url: Secret = setting(
        None, "Registry that requirements come from; without it, the public one."
    )
    build_network: bool = setting(
        True, "Let builds fetch packages; off, only a wheelhouse is used."
    )
    source_builds: bool = setting(
        False, "Let builds run the build code of packages without a wheel, outside the sandbox."
    )
    resolution_hours: float = setting(
        24, "Time for which equal requirements mean the same versions.", "hours", (0, 8760)
    )
    environment_max_mb: int = setting(
        2048, "Size of the installed packages of one configuration.", "MiB", (1, 1_048_576)
    )
    environment_keep_days: float = setting(
        30, "Keep installed packages that no run used for this long.", "days", (0.01, 3650)
    )
    environment_cache_mb: int = setting(
        4096, "Size of the cache of fetched packages; a larger cache is emptied.", "MiB", (0, 10**7)
    )
    sandbox: Sandbox = setting(
        "landlock", "Least isolation that is accepted; below it jobs are refused."
    )
    sandbox_uid_base: int = setting(
        64_100,
        "First of the 64 user ids that jobs run as, when ADE runs as root.",
        "",
        (1000, 2**31),
    )
    sandbox_memory_mb: int = setting(
        1024,
        "Memory for warm interpreters; beyond it the least recently used one is stopped.",
        "MiB",
        (64, 10**6),
    )
    idle_warmup_seconds: float = setting(
        2,
        "A worker that was idle for so long starts interpreters with the libraries of runs and"
        " cells in advance, in half of their memory; 0 never does.",
        "seconds",
        (0, 3600),
    )
    sandbox_jobs_max: int = setting(
        5000, "Jobs that one warm interpreter starts before it is replaced.", "jobs", (1, 10**6)
    )
    worker_disk_mb: int = setting(256, "Size of one job's folder.", "MiB", (1, 1_048_576))
    worker_tmp_mb: int = setting(64, "Size of one job's /tmp.", "MiB", (1, 1_048_576))
    worker_files_max: int = setting(
        10_000, "Files and folders that one job may have.", "files", (10, 10**7)
    )
    worker_processes_max: int = setting(
        64, "Processes and threads of one job.", "processes", (1, 10_000)
    )
    worker_open_files_max: int = setting(
        256, "Files that one process of a job may have open.", "files", (16, 100_000)
    )
    worker_nice: int = setting(
        5,
        "Niceness of jobs: the higher, the less CPU time they get beside the server and others.",
        "",
        (0, 19),
    )

    # What a job may ask for at most
    limit_timeout_seconds_max: float = setting(
        3600, "Longest wall clock a job may ask for.", "seconds", (0.1, 30 * DAY_SECONDS)
    )
    limit_container_seconds_max: float = setting(
        7 * DAY_SECONDS,
        "Longest wall clock a container may ask for.",
        "seconds",
        (0.1, 365 * DAY_SECONDS),
    )
    limit_cpu_seconds_max: int = setting(
        3600, "Most CPU time a job may ask for.", "seconds", (1, 30 * DAY_SECONDS)
    )
    limit_memory_mb_max: int = setting(
        4096, "Most memory a job may ask for.", "MiB", (16, 1_048_576)
    )
    limit_output_kb_max: int = setting(
        10_240, "Most output a job may ask to keep.", "KiB", (1, 1_048_576)
    )
    limit_artifacts_max: int = setting(
        1000, "Most artifacts a job may ask for.", "artifacts", (0, 100_000)
    )

    # Leases and the worker's loop
    lease_seconds: float = setting(
        15,
        "A worker that does not renew its leases for this long loses its jobs.",
        "seconds",
        (0.1, 3600),
    )
    lease_margin_seconds: float = setting(
        3, "A worker stops trusting its lease this long before it expires.", "seconds", (0.01, 3600)
    )
    renew_seconds: float = setting(3, "Time between two renewals.", "seconds", (0.01, 3600))
    poll_seconds: float = setting(
        1, "Time between two looks for work when no notification comes.", "seconds", (0.01, 60)
    )
    sweep_seconds: float = setting(
        2,
        "Time between two sweeps for lost leases, overdue jobs and timers.",
        "seconds",
        (0.01, 3600),
    )
    drain_grace_seconds: float = setting(
        30, "Time for running jobs to end after SIGTERM.", "seconds", (0, DAY_SECONDS)
    )
    retry_max_attempts: int = setting(
        3, "Attempts of one job or build, the first included.", "attempts", (1, 100)
    )

    # Agents on other hosts
    vm_shared_data: Folder = setting(
        Path("/opt/opeva_shared_data"),
        "Folder that server and agents share, with the output of containers. Where the default"
        " does not exist or cannot be written, `shared` in the data folder is used.",
        aliases=("VM_SHARED_DATA",),
    )
    agent_output_max_mb: int = setting(
        256, "Output of one container that is kept; the rest is dropped.", "MiB", (1, 900)
    )
    worker_networks: NetworksOrNone = setting(
        None,
        "Networks whose workers need no key; `none` for no network. Without it: this machine, if"
        " `ADE_HOST` is a loopback address and neither `ADE_PUBLIC_URL` nor `ADE_TRUSTED_PROXIES`"
        " is set.",
    )
    available_hosts: Hosts = setting(
        (),
        "Agents that may take work, and that a job may name; empty allows every one.",
        aliases=("AVAILABLE_HOSTS",),
    )
    agent_queue_size: int = setting(
        10_000,
        "Jobs that wait for agents and ask for the same host and labels; 0 is unbounded.",
        "jobs",
        (0, 10_000_000),
    )
    simulation_image: Image = setting(
        "calof/opeva_simulator:latest",
        "Image of `POST /run-simulation` for requests that name none.",
    )
    queue_claim_ttl: float = setting(
        60,
        "A job is queued again if its agent reports no status within this time of taking it.",
        "seconds",
        (1, DAY_SECONDS),
        aliases=("QUEUE_CLAIM_TTL",),
    )
    host_heartbeat_ttl: float = setting(
        60,
        "An agent that sends nothing for this long is offline.",
        "seconds",
        (1, DAY_SECONDS),
        aliases=("HOST_HEARTBEAT_TTL",),
    )
    worker_stale_grace_seconds: float = setting(
        30,
        "Further wait before the jobs of an offline agent fail.",
        "seconds",
        (0, DAY_SECONDS),
        aliases=("WORKER_STALE_GRACE_SECONDS",),
    )
    job_status_ttl: float = setting(
        300,
        "A running job fails if its agent neither reports on it nor lists it in a heartbeat "
        "for this long.",
        "seconds",
        (1, DAY_SECONDS),
        aliases=("JOB_STATUS_TTL",),
    )

    _origins: dict[str, str] = PrivateAttr(default_factory=dict)
    _warnings: tuple[str, ...] = PrivateAttr(default=())

    @model_validator(mode="after")
    def _agree(self) -> Self:
        trusted_seconds = self.lease_seconds - self.lease_margin_seconds
        if trusted_seconds <= 0:
            raise SettingsError(
                f"ADE_LEASE_MARGIN_SECONDS={self.lease_margin_seconds:g} is not allowed: "
                f"give less than ADE_LEASE_SECONDS={self.lease_seconds:g}"
            )
        if self.renew_seconds >= trusted_seconds:
            raise SettingsError(
                f"ADE_RENEW_SECONDS={self.renew_seconds:g} is not allowed: give less than "
                f"ADE_LEASE_SECONDS - ADE_LEASE_MARGIN_SECONDS = {trusted_seconds:g}"
            )
        return self

    @property
    def blobs_dir(self) -> Path:
        """Folder of bytes by digest; with `blob_url`, of copies of them."""
        return self.storage_data_dir / "blobs"

    @property
    def jobs_dir(self) -> Path:
        """Folder with one folder per job."""
        return self.storage_data_dir / "jobs"

    @property
    def shared_fallback_dir(self) -> Path:
        """Folder that is shared with agents where no other one can be used."""
        return self.storage_data_dir / "shared"

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return what `ade` warns of at its start, such as unknown variables."""
        return self._warnings

    def origin(self, name: str) -> str:
        """Return where a setting's value came from."""
        if name not in type(self).model_fields:
            raise KeyError(name)
        return self._origins.get(name) or (
            "argument" if name in self.model_fields_set else "default"
        )


def all_settings() -> tuple[Setting, ...]:
    """List every setting in the order of the reference page."""
    return settings_of(Settings)


def load_settings(environ: Mapping[str, str] | None = None, dotenv: Path | None = None) -> Settings:
    """Read the settings, or raise a SettingsError of one line that names the variable."""
    sources = (
        environment_source(os.environ if environ is None else environ),
        env_file_source(Path(".env") if dotenv is None else dotenv),
    )
    declared = all_settings()
    found = {setting.name: read for setting in declared if (read := read_setting(setting, sources))}
    try:
        settings = Settings(**{name: value for name, (value, _) in found.items()})
    except ValidationError as refused:
        raise SettingsError(_cause(refused)) from None
    settings._origins.update({name: origin for name, (_, origin) in found.items()})
    settings._warnings = tuple(unknown_variables(declared, sources))
    return settings


def _cause(refused: ValidationError) -> str:
    """Return the message of the check that the settings failed together."""
    first = refused.errors()[0]
    return str(first.get("ctx", {}).get("error", first["msg"]))
