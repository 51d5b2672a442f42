"""ADE's HTTP server under load: durable submissions, one by one and in batches."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from bench.child import ROOT
from bench.serving import HttpContestant

KEY = "ade_bench_key_of_no_worth_outside_of_this_run"
JOBS = "/api/v1/workspaces/default/jobs"
BODY = (
    '{"job_type": "echo", "document_revision_id": "r-@N@", "priority": "normal",'
    ' "inputs": {"value": "@N@"}}'
)


class AdeServer(HttpContestant):
    """`ade serve` with an unbounded queue; running the jobs is not what is measured."""

    path = JOBS
    batch_path = JOBS + "/batch"
    token = KEY
    body = BODY

    def command(self, port: int, url: str) -> list[str]:
        return [str(ROOT / ".venv/bin/ade"), "serve", "--no-worker", "--port", str(port)]

    def environment(self, url: str) -> Mapping[str, str]:
        return {
            "ADE_BOOTSTRAP_API_KEY": KEY,
            "ADE_QUEUE_SIZE": "0",
            "ADE_STORAGE_DATA_DIR": tempfile.mkdtemp(prefix="ade-bench-"),
            "ADE_DATABASE_URL": self.database_url(url),
            "ADE_LOG_LEVEL": "error",
        }

    def database_url(self, url: str) -> str:
        raise NotImplementedError


class AdeOnSqlite(AdeServer):
    name = "ADE on SQLite"
    database = "sqlite"

    def database_url(self, url: str) -> str:
        return f"sqlite:///{Path(url).resolve()}"


class AdeOnPostgres(AdeServer):
    name = "ADE on PostgreSQL"
    database = "postgres"

    def database_url(self, url: str) -> str:
        return url.replace("postgresql://", "postgresql+psycopg://", 1)
