"""A worker of the worker contract, written from its text alone: the standard library, no ADE.

It is a program: `python plain_worker.py`, with `SERVER`, `WORKER_ID` and `SHARED` in its
environment, and `KEY` where the server requires one. In place of a container it runs the command
of the job on this machine, in which `/data` is the shared folder. It ends when it receives SIGTERM,
and fails loudly on any answer that the contract does not have.
"""

import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

SERVER, WORKER_ID = os.environ["SERVER"], os.environ["WORKER_ID"]
SHARED = Path(os.environ["SHARED"])
HEADERS = {"Content-Type": "application/json"}
if key := os.environ.get("KEY"):
    HEADERS["Authorization"] = f"Bearer {key}"
BEAT_SECONDS, POLL_SECONDS, REPORT_SECONDS = 0.5, 0.05, 0.1
ended = threading.Event()


def call(method: str, path: str, body: Any = None) -> tuple[int, Any]:
    """Send a request, and return the status and the body of the answer."""
    request = urllib.request.Request(
        SERVER + path,
        None if body is None else json.dumps(body).encode(),
        HEADERS,
        method=method,
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            text = answer.read()
            return answer.status, json.loads(text) if text else None
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def report(job_id: str, status: str, **more: Any) -> int:
    """Report the status of a job."""
    body = {"job_id": job_id, "status": status, "worker_id": WORKER_ID, **more}
    return call("POST", "/api/agent/job-status", body)[0]


def beat() -> None:
    """Send heartbeats on a fixed interval."""
    while not ended.wait(BEAT_SECONDS):
        status, _ = call(
            "POST", "/api/agent/heartbeat", {"worker_id": WORKER_ID, "info": {"load": 0.5}}
        )
        assert status == 200, status


def run(job: dict[str, Any]) -> None:
    """Run the container of a job to its end, or until its stop is requested."""
    job_id = job["job_id"]
    assert (SHARED / job["config_path"]).is_file(), job["config_path"]
    assert job["volumes"] == [{"host": str(SHARED), "container": "/data", "mode": "rw"}]
    command = shlex.split(job["command"].replace("/data", str(SHARED)))
    log = SHARED / "jobs" / job_id / "logs" / f"{job_id}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        container = subprocess.Popen(
            command,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={"PATH": os.environ["PATH"], **job["env"]},
        )
    about = {"container_id": f"process-{container.pid}", "container_name": job["container_name"]}
    assert report(job_id, "running", **about) == 200
    while True:
        try:
            exit_code = container.wait(REPORT_SECONDS)
            break
        except subprocess.TimeoutExpired:
            pass
        status, now = call("GET", f"/status/{job_id}")
        if ended.is_set() or (status == 200 and now["status"] == "stop_requested"):
            container.terminate()
            report(job_id, "stopped", exit_code=container.wait())
            return
        report(job_id, "running")
    if exit_code == 0:
        report(job_id, "finished", exit_code=0)
    else:
        report(job_id, "failed", exit_code=exit_code, error="the container failed")


def main() -> None:
    """Ask for jobs and run them one after the other."""
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    threading.Thread(target=beat, daemon=True).start()
    while not ended.is_set():
        status, job = call("POST", "/api/agent/next-job", {"worker_id": WORKER_ID})
        if status == 200:
            run(job)
        elif status == 204:
            ended.wait(POLL_SECONDS)
        else:
            sys.exit(f"next-job answered {status}: {job}")


if __name__ == "__main__":
    main()
