"""``ade demo``: submit a job to a server of its own, and watch it finish."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ade.cli.exit_codes import ExitCode
from ade.cli.running import run

if TYPE_CHECKING:
    import httpx

FOLDER = Path("data/demo")
STEPS = 20
JOB = {
    "job_type": "echo",
    "document_revision_id": "demo",
    "inputs": {"value": {"hello": "world"}, "sleep_ms": 2000, "steps": STEPS, "print": "hello"},
}


def demo() -> None:
    """Show one job from its submission to its result, on the embedded database."""
    from ade.serving import serve
    from ade.settings import SettingsError, load_settings

    ours = {"ADE_STORAGE_DATA_DIR": str(FOLDER), "ADE_HOST": "127.0.0.1", "ADE_PORT": "0"}
    others = {name: value for name, value in os.environ.items() if name != "ADE_DATABASE_URL"}
    try:
        settings = load_settings(others | ours, dotenv=Path(os.devnull))
    except SettingsError as refused:
        typer.echo(f"ade: {refused}", err=True)
        raise typer.Exit(ExitCode.USAGE) from None

    run(lambda: _demonstrate(settings, serve))


async def _demonstrate(settings: Any, serve: Any) -> None:
    import asyncio

    import structlog

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    links: asyncio.Queue[str] = asyncio.Queue()
    settings = settings.model_copy(update={"bootstrap_api_key": _key()})
    serving = asyncio.create_task(serve(settings, links.put_nowait, hears_signals=False))
    told = asyncio.create_task(links.get())
    await asyncio.wait([serving, told], return_when=asyncio.FIRST_COMPLETED)
    if serving.done():
        await serving
    try:
        await _watch(settings, told.result().split("?")[0])
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


def _key() -> Any:
    from pydantic import SecretStr

    from ade.store.directory import new_secret

    return SecretStr(new_secret())


async def _watch(settings: Any, url: str) -> None:
    import httpx

    key = settings.bootstrap_api_key.get_secret_value()
    headers = {"Authorization": f"Bearer {key}", "Idempotency-Key": os.urandom(8).hex()}
    transport = httpx.AsyncHTTPTransport(retries=5)
    async with httpx.AsyncClient(base_url=url, headers=headers, transport=transport) as client:
        job = {**JOB, "document_revision_id": os.urandom(8).hex()}
        answer = await client.post("api/v1/workspaces/default/jobs", json=job)
        answer.raise_for_status()
        accepted = answer.json()
        typer.echo(f"submitted  {accepted['job_id']}  ({accepted['status']})")
        await _show_progress(client, accepted["links"]["events"])
        done = (await client.get(accepted["links"]["self"])).json()
        result = (await client.get(accepted["links"]["result"])).json()
    folder = settings.jobs_dir / done["job_id"]
    typer.echo(f"{done['status']:<10} in {done['duration_ms']} ms, attempt {done['attempt']}")
    typer.echo(f"result     {json.dumps(result['outputs']['result_json'])}")
    typer.echo(f"files      {folder}/")
    for file in sorted(folder.iterdir()):
        typer.echo(f"           {file.name}  ({file.stat().st_size} bytes)")
    if done["status"] != "succeeded":
        raise typer.Exit(ExitCode.JOB_FAILED)


async def _show_progress(client: "httpx.AsyncClient", path: str) -> None:
    """Follow the job's events to their end, with a bar on a terminal and lines elsewhere."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console()
    asked = {"Accept": "text/event-stream"}
    with Progress(console=console, disable=not console.is_terminal) as progress:
        bar = progress.add_task("running", total=STEPS)
        async with client.stream("GET", path, headers=asked, timeout=60) as stream:
            async for line in stream.aiter_lines():
                if not line.startswith("data:"):
                    continue
                event = json.loads(line.removeprefix("data:"))
                if event["event"] == "worker.progress":
                    progress.update(bar, completed=event["data"]["done"])
                else:
                    console.print(f"{event['at']}  {event['event']}")
        progress.update(bar, completed=STEPS)
