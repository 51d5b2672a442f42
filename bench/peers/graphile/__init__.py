"""graphile-worker, which runs on node: installed once into bench/.node, one process a case."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

from bench.cases import BULK_ROWS, Case, Contestant, Sample, Unavailable

HERE = Path(__file__).parent
NODE = HERE.parent.parent / ".node"
PACKAGE = "graphile-worker"
INSTALL_SECONDS_MAX = 180


class Graphile(Contestant):
    name = "graphile-worker"
    database = "postgres"
    cases = (
        Case("enqueue", jobs_max=5_000),
        Case("bulk"),
        Case("drain", batch=1, jobs_max=3_000),
        Case("drain", batch=100),
        Case("drain", batch=500),  # its local queue gains from more than 100
        Case("pickup"),
    )

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._node("install")

    @classmethod
    def prepare(cls) -> None:
        if not (shutil.which("node") and shutil.which("npm")):
            raise Unavailable("node or npm is not installed")
        pinned = json.loads((HERE / "package.json").read_text())["dependencies"][PACKAGE]
        manifest = NODE / "node_modules" / PACKAGE / "package.json"
        if manifest.exists() and json.loads(manifest.read_text())["version"] == pinned:
            return
        NODE.mkdir(exist_ok=True)
        shutil.copy(HERE / "package.json", NODE)
        command = ["npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--silent"]
        try:
            subprocess.run(command, cwd=NODE, check=True, timeout=INSTALL_SECONDS_MAX)
        except (subprocess.SubprocessError, OSError) as error:
            raise Unavailable(f"npm could not install {PACKAGE}: {error}") from error

    def enqueue(self, count: int) -> Sample:
        return self._node("enqueue", count=count)

    def enqueue_bulk(self, count: int) -> Sample:
        return self._node("bulk", count=count, rows=BULK_ROWS)

    def drain(self, count: int, batch: int, workers: int) -> Sample:
        return self._node("drain", count=count, batch=batch)

    def pickup(self, count: int) -> Sample:
        return self._node("pickup", count=count)

    def _node(self, operation: str, **order: int) -> Sample:
        """Run one operation of bench.cjs; node inherits this process's core."""
        command = ["node", str(HERE / "bench.cjs"), operation, self.url, json.dumps(order)]
        environment = {**os.environ, "NODE_PATH": str(NODE / "node_modules")}
        done = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, text=True, check=True
        )
        answer = json.loads(done.stdout.splitlines()[-1])
        return Sample(answer["jobs"], answer["seconds"], tuple(answer["latencies"]))
