"""``ade agent``: run jobs on this host, for a server elsewhere: containers, and sandboxed jobs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ade.cli.event_loop import run
from ade.cli.exit_codes import ExitCode
from ade.cli.settings import settings_or_exit

if TYPE_CHECKING:
    from ade.settings import Settings

STATE_DIR = Path("/var/lib/ade-agent")


def sandbox_settings(state_dir: Path) -> Settings:
    """Load the settings of sandboxed jobs; by default their data is kept in the state folder."""
    settings = settings_or_exit()
    if settings.origin("storage_data_dir") != "default":
        return settings
    folder = state_dir / "sandboxed"
    changes = {"storage_data_dir": folder}
    if settings.origin("activation_envs_dir") == "default":
        changes["activation_envs_dir"] = folder / "venvs"
    return settings.model_copy(update=changes)


def agent(
    server: Annotated[
        str, typer.Option(envvar="ADE_AGENT_SERVER", metavar="URL", help="Address of the server.")
    ],
    name: Annotated[
        str | None,
        typer.Option(
            envvar=["ADE_AGENT_NAME", "WORKER_ID"],
            help="Name of this agent, as it is enrolled; without it, that of the host.",
        ),
    ] = None,
    key_file: Annotated[
        Path | None,
        typer.Option(
            envvar="ADE_AGENT_KEY_FILE",
            metavar="FILE",
            help="File with the agent's key; without it, `key` in the state folder.",
        ),
    ] = None,
    code: Annotated[
        str | None,
        typer.Option(
            envvar="ADE_AGENT_CODE",
            help="One-time code that is traded for the key, if the key file is not there yet.",
        ),
    ] = None,
    state_dir: Annotated[
        Path,
        typer.Option(
            envvar="ADE_AGENT_STATE_DIR",
            metavar="FOLDER",
            help="Folder that keeps orders, output and results until the server has them.",
        ),
    ] = STATE_DIR,
    label: Annotated[
        list[str] | None,
        typer.Option(
            envvar="ADE_AGENT_LABELS", help="Label that jobs may ask for; may be repeated."
        ),
    ] = None,
    slots: Annotated[
        int,
        typer.Option(
            envvar="ADE_AGENT_SLOTS", min=1, max=1000, help="Containers that run at once."
        ),
    ] = 1,
    engine: Annotated[
        str | None,
        typer.Option(
            envvar="ADE_AGENT_ENGINE",
            metavar="URL",
            help="Address of the container engine; without it, DOCKER_HOST or the usual socket.",
        ),
    ] = None,
    folder: Annotated[
        list[Path] | None,
        typer.Option(
            envvar="ADE_AGENT_FOLDERS",
            metavar="FOLDER",
            help="Folder below which volumes may lie; may be repeated.",
        ),
    ] = None,
    shared_folder: Annotated[
        Path | None,
        typer.Option(
            envvar=["ADE_VM_SHARED_DATA", "VM_SHARED_DATA"],
            metavar="FOLDER",
            exists=True,
            file_okay=False,
            help="Folder that this host shares with the server: output is written there, and"
            " volumes may lie below it. Without it, output is sent to the server.",
        ),
    ] = None,
    network: Annotated[
        bool,
        typer.Option(envvar="ADE_AGENT_NETWORK", help="Give a network to jobs that ask for one."),
    ] = True,
    memory_mb: Annotated[
        int,
        typer.Option(
            envvar="ADE_AGENT_MEMORY_MB", min=6, help="Memory of a container that asks for none."
        ),
    ] = 2048,
    memory_mb_max: Annotated[
        int | None,
        typer.Option(
            envvar="ADE_AGENT_MEMORY_MB_MAX", min=6, help="Most memory that a job may ask for."
        ),
    ] = None,
    cpus: Annotated[
        float | None,
        typer.Option(
            envvar="ADE_AGENT_CPUS", min=0.01, help="CPUs of a container that asks for none."
        ),
    ] = None,
    cpus_max: Annotated[
        float | None,
        typer.Option(
            envvar="ADE_AGENT_CPUS_MAX", min=0.01, help="Most CPUs that a job may ask for."
        ),
    ] = None,
    pids: Annotated[
        int,
        typer.Option(
            envvar="ADE_AGENT_PIDS",
            min=1,
            help="Processes and threads of a container that does not say how many.",
        ),
    ] = 1024,
    spool_mb: Annotated[
        int,
        typer.Option(
            envvar="ADE_AGENT_SPOOL_MB",
            min=1,
            help="Output of one container that is kept until the server has it.",
        ),
    ] = 1024,
    drain_seconds: Annotated[
        float,
        typer.Option(
            envvar="ADE_AGENT_DRAIN_SECONDS",
            min=0,
            help="Time for running containers to end after SIGTERM; then they are stopped.",
        ),
    ] = 30.0,
    heartbeat_seconds: Annotated[
        float,
        typer.Option(
            envvar="ADE_AGENT_HEARTBEAT_SECONDS", min=0.1, help="Time between two heartbeats."
        ),
    ] = 10.0,
    watch_seconds: Annotated[
        float,
        typer.Option(
            envvar="ADE_AGENT_WATCH_SECONDS",
            min=0.1,
            help="How often to ask whether a running job is to be stopped.",
        ),
    ] = 3.0,
    containers: Annotated[
        bool, typer.Option(envvar="ADE_AGENT_CONTAINERS", help="Take jobs with containers.")
    ] = True,
    kinds: Annotated[
        str,
        typer.Option(
            envvar="ADE_AGENT_KINDS",
            metavar="KINDS",
            help="Sandboxed job types to take, by commas, or `all`; ADE_MAX_CONCURRENCY says how"
            " many run at once.",
        ),
    ] = "",
) -> None:
    """Take jobs from a server, and run them on this host."""
    from ade.agents.agent_config import AgentConfig, default_engine, default_name
    from ade.process.agent import run_agent
    from ade.telemetry.log_setup import set_up_logs

    if not server.startswith(("http://", "https://")):
        raise typer.BadParameter(
            "give an address such as https://ade.example", param_hint="--server"
        )
    config = AgentConfig(
        server=server.rstrip("/"),
        name=name or default_name(),
        key_file=key_file or state_dir / "key",
        state_dir=state_dir,
        code=code,
        labels=tuple(label or ()),
        slots=slots,
        engine=engine or default_engine(),
        folders=tuple(folder or ()),
        shared_folder=shared_folder,
        network=network,
        memory_mb=memory_mb,
        memory_mb_max=memory_mb_max,
        cpus=cpus,
        cpus_max=cpus_max,
        pids=pids,
        spool_mb=spool_mb,
        drain_seconds=drain_seconds,
        heartbeat_seconds=heartbeat_seconds,
        watch_seconds=watch_seconds,
        containers=containers,
        kinds=tuple(kind for kind in kinds.split(",") if kind),
    )
    if not (config.containers or config.kinds):
        raise typer.BadParameter("without containers, name kinds", param_hint="--kinds")
    settings = sandbox_settings(state_dir) if config.kinds else None
    set_up_logs("auto", "info")
    try:
        run(lambda: run_agent(config, typer.echo, settings))
    except PermissionError as refused:
        typer.echo(f"ade: {refused.filename}: {refused.strerror}", err=True)
        raise typer.Exit(ExitCode.USAGE) from None
