"""``ade demo``: normalise a spreadsheet with a temporary server, and see why."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ade.cli.event_loop import run
from ade.cli.exit_codes import ExitCode
from ade.cli.run_summary import explain

if TYPE_CHECKING:
    import httpx

FOLDER = Path("data/demo")
EXAMPLE = "member_roster"
SAMPLE = "samples/roster.csv"


def demo() -> None:
    """Show one run from its upload to its result, on the embedded database."""
    from ade.process.serve import serve
    from ade.settings import SettingsError, load_settings

    ours = {"ADE_STORAGE_DATA_DIR": str(FOLDER), "ADE_HOST": "127.0.0.1", "ADE_PORT": "0"}
    shared = ("ADE_DATABASE_URL", "ADE_BLOB_URL", "ADE_PUBLIC_URL")
    others = {name: value for name, value in os.environ.items() if name not in shared}
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
    serving = asyncio.create_task(
        serve(settings, lambda link, _: links.put_nowait(link), hears_signals=False)
    )
    link = asyncio.create_task(links.get())
    await asyncio.wait([serving, link], return_when=asyncio.FIRST_COMPLETED)
    if serving.done():
        await serving
    try:
        await _watch(settings, link.result().split("?")[0])
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


def _key() -> Any:
    from pydantic import SecretStr

    from ade.store.directory import new_secret

    return SecretStr(new_secret())


async def _watch(settings: Any, url: str) -> None:
    import httpx

    from ade_engine.examples import FOLDER as EXAMPLES

    key = settings.bootstrap_api_key.get_secret_value()
    headers = {"Authorization": f"Bearer {key}"}
    transport = httpx.AsyncHTTPTransport(retries=5)
    async with httpx.AsyncClient(base_url=url, headers=headers, transport=transport) as client:
        sample = EXAMPLES / EXAMPLE / SAMPLE
        document = await _ask(client, "documents", files={"file": (sample.name, sample.open("rb"))})
        typer.echo(f"document       {document['name']}  ({document['size_bytes']} bytes)")
        made = {"name": "Members", "template": EXAMPLE}
        configuration = await _ask(client, "configurations", json=made)
        typer.echo(f"configuration  {configuration['name']}, from the example {EXAMPLE}")
        place = f"configurations/{configuration['configuration_id']}/runs"
        run = await _ask(client, place, json={"input_document_id": document["document_id"]})
        typer.echo(f"run            {run['run_id']}  ({run['status']})")
        await _show_progress(client, run["links"]["events"])
        done = (await client.get(run["links"]["self"])).json()
        artifact = await client.get(run["links"]["artifact"])
    if done["status"] != "succeeded":
        typer.echo(f"{done['status']}: {(done['error'] or {}).get('message', '')}")
        raise typer.Exit(ExitCode.JOB_FAILED)
    explain(artifact.json())
    folder = settings.jobs_dir / done["run_id"]
    for name in ("normalized.xlsx", "artifact.json"):
        typer.echo(f"{name:<15} {folder / name}")


async def _ask(client: "httpx.AsyncClient", path: str, **body: Any) -> Any:
    answer = await client.post(f"api/v1/workspaces/default/{path}", timeout=60, **body)
    answer.raise_for_status()
    return answer.json()


async def _show_progress(client: "httpx.AsyncClient", path: str) -> None:
    """Follow the run's events to their end, with a bar on a terminal and lines elsewhere."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console()
    headers = {"Accept": "text/event-stream"}
    with Progress(console=console, disable=not console.is_terminal) as progress:
        bar = progress.add_task("rows", total=None)
        async with client.stream("GET", path, headers=headers, timeout=60) as stream:
            async for line in stream.aiter_lines():
                if not line.startswith("data:"):
                    continue
                event = json.loads(line.removeprefix("data:"))
                if event["event"] == "worker.progress":
                    data = event["data"]
                    progress.update(bar, completed=data["done"], total=data["total"] or None)
                else:
                    console.print(f"{event['at']}  {event['event']}")
        progress.update(bar, completed=1, total=1)
