"""A server under test: the app over a real kernel, and the worker's part played by the test."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from ade.app.catalogue import Catalogue
from ade.app.directory import Directory
from ade.clock import SystemClock, new_id
from ade.domain.job import Status
from ade.domain.outcome import Artifact, Category, JobError, Outcome
from ade.http import create_app
from ade.http.fast_path import Application
from ade.kernel import Kernel
from ade.kinds import load_kinds
from ade.process.connection_limits import ConnectionRules, Connections
from ade.settings import Settings
from ade.stages.claim import ClaimRequest
from ade.stages.finish import Finish
from ade.stages.kernel_settings import KernelSettings
from ade.storage import Blobs
from ade.storage.shared_folder import SharedFolder
from ade.store.rows import Claim
from ade.store.session import Session

KEY = "ade_test_key"
JOBS = "/api/v1/workspaces/default/jobs"
TARGETS = "/api/v1/workspaces/default/targets"


def echo(value: Any = 1, **more: Any) -> dict[str, Any]:
    """Ask for a job that gives back a value."""
    return {
        "job_type": "echo",
        "document_revision_id": "rev-1",
        "inputs": {"value": value},
        **more,
    }


def succeeded(value: Any = None, **outputs: Any) -> Outcome:
    """End well."""
    body = {"outputs": {"result_json": value, **outputs}, "artifacts": [], "logs": []}
    return Outcome(Status.SUCCEEDED, body, usage={"cpu_ms": 7, "memory_mb_peak": 3})


def failed(category: Category = Category.USER_CODE_ERROR) -> Outcome:
    """End badly."""
    error = JobError(category, "PYTHON_EXCEPTION", "ValueError: no", {"line": 3})
    body = {"outputs": {"stdout": "", "stderr": "Traceback"}, "artifacts": []}
    return Outcome(Status.FAILED, body, error)


def kept_file(server: "Server", name: str, content: bytes) -> Artifact:
    """Store a file that a job is to leave."""
    blob = server.blobs.write([content], len(content))
    return Artifact(
        id=new_id(SystemClock()),
        name=name,
        kind="file",
        format=name.rpartition(".")[2],
        digest=blob.digest,
        size_bytes=len(content),
        uri=server.blobs.uri(blob.digest),
        content_type="text/plain",
    )


class Server:
    """Hold the parts of a server and a client that is the admin."""

    def __init__(
        self,
        app: Application,
        kernel: Kernel,
        directory: Directory,
        catalogue: Catalogue,
        blobs: Blobs,
    ) -> None:
        self.app = app
        self.kernel = kernel
        self.directory = directory
        self.catalogue = catalogue
        self.blobs = blobs
        self.http = self.client(KEY)

    @classmethod
    def open(
        cls, url: str, folder: Path, rules: KernelSettings | None = None, **changes: Any
    ) -> "Server":
        """Open the database and make the app."""
        probes = changes.pop("health_probes", {})
        inline_tasks = changes.pop("inline_tasks", None)
        given_blobs = changes.pop("blobs", None)
        settings = Settings(storage_data_dir=folder, database_url=url, **changes)
        session = Session(url)
        directory = Directory(session)
        directory.bootstrap(KEY)
        kernel = Kernel(session, rules or KernelSettings(queue_size=0))
        catalogue = Catalogue(session)
        blobs = given_blobs or Blobs(settings.blobs_dir)
        shared_folder = SharedFolder(settings.shared_fallback_dir)
        shared_folder.create(private=True)
        app = create_app(
            kernel,
            directory,
            settings,
            load_kinds(),
            catalogue=catalogue,
            blobs=blobs,
            shared_folder=shared_folder,
            inline_tasks=inline_tasks,
            health_probes=probes,
        )
        return cls(app, kernel, directory, catalogue, blobs)

    def close(self) -> None:
        """Let go of everything."""
        self.kernel.store.close()

    def client(self, key: str | None = None, **options: Any) -> httpx.AsyncClient:
        """Make a client with a key."""
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        transport = httpx.ASGITransport(self.app)
        options.setdefault("base_url", "http://ade")
        return httpx.AsyncClient(transport=transport, headers=headers, timeout=30, **options)

    @contextlib.asynccontextmanager
    async def on_the_wire(self, **rules: Any) -> AsyncIterator[str]:
        """Serve on a loopback port, with some limits on connections."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            config = uvicorn.Config(
                self.app,
                http=Connections(ConnectionRules(**rules)).protocol,  # type: ignore[arg-type]
                ws="none",
                log_level="warning",
                lifespan="off",
                timeout_graceful_shutdown=1,
            )
            server = uvicorn.Server(config)
            task = asyncio.create_task(server.serve(sockets=[listener]))
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
            server.should_exit = True
            await task

    def http_to(self, url: str, key: str = KEY) -> httpx.AsyncClient:
        """Make a client with a key that connects to an address."""
        headers = {"Authorization": f"Bearer {key}"}
        return httpx.AsyncClient(base_url=url, headers=headers, timeout=30)

    async def submit(self, **more: Any) -> dict[str, Any]:
        """Submit a job that must be accepted."""
        answer = await self.http.post(JOBS, json=echo(**more))
        assert answer.status_code == 202, answer.text
        return answer.json()

    async def claim(self) -> Claim:
        """Take the next job, as a worker would."""
        (claim,) = await self.kernel.claim(ClaimRequest("worker-1", 1))
        return claim

    async def finish(self, claim: Claim, outcome: Outcome | None = None) -> None:
        """End an attempt."""
        await self.kernel.finish(Finish(claim, outcome or succeeded()))

    async def run(self, outcome: Outcome | None = None, **more: Any) -> dict[str, Any]:
        """Submit a job and run it to its end; return it as it was submitted."""
        job = await self.submit(**more)
        await self.finish(await self.claim(), outcome)
        return job


def problem(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """Check that an answer is a problem, and return it."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    found = answer.json()
    assert found["status"] == status
    assert found["code"] == code
    assert found["type"].endswith(code)
    assert found["title"]
    assert found["detail"]
    assert found["trace_id"] == answer.headers["x-trace-id"]
    return found
