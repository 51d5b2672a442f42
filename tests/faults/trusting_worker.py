"""A worker of the worker contract that says when it ran what; the standard library, no ADE.

It is a program: `python trusting_worker.py SERVER WORKER_ID KEY FOLDER`. A job runs until the file
`end` is in the folder. It begins when its first report was accepted, and it is trusted for
`TRUST_SECONDS` from when a report was sent that was accepted. After that it is ended, and its end
is reported until there is an answer. Each line that it prints is an event in JSON.
"""

import json
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

SERVER, WORKER_ID, KEY, FOLDER = sys.argv[1:]
SLOTS = 4
TRUST_SECONDS = 6.0
REPORT_SECONDS = 0.3
ANSWER_SECONDS = 1.5
WAIT_SECONDS = 25
printing = threading.Lock()


def tell(event: str, job_id: str = "", **more: Any) -> None:
    """Say what has happened, by the clock that all processes of the machine share."""
    line = {"event": event, "job_id": job_id, "at": time.monotonic(), **more}
    with printing:
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()


def call(path: str, body: dict[str, Any], seconds: float = ANSWER_SECONDS) -> tuple[int, Any]:
    """Send a request; the status is 0 if there is no answer."""
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"}
    content = json.dumps({"worker_id": WORKER_ID, **body}).encode()
    request = urllib.request.Request(SERVER + path, content, headers, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=seconds) as answer:
            text = answer.read()
            return answer.status, json.loads(text) if text else None
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read() or b"{}")
    except OSError:
        return 0, None


def report(job_id: str, status: str, proof: dict[str, Any]) -> int:
    """Report on a job."""
    body = {"job_id": job_id, "status": status, **proof}
    return call("/api/agent/job-status", body)[0]


def run(job: dict[str, Any]) -> None:
    """Run a job as long as it is trusted, and report its end until there is an answer."""
    job_id = job["job_id"]
    proof = {name: job[name] for name in ("attempt_number", "attempt_token")}
    sent = time.monotonic()
    if (answer := report(job_id, "running", proof)) != 200:
        tell("refused", job_id, answer=answer)
        return
    tell("begun", job_id)
    trusted_until, ended, status = sent + TRUST_SECONDS, False, "failed"
    while time.monotonic() < trusted_until - 2 * ANSWER_SECONDS:
        if (Path(FOLDER) / "end").exists():
            ended, status = True, "finished"
            break
        sent = time.monotonic()
        if report(job_id, "running", proof) == 200:
            trusted_until = sent + TRUST_SECONDS
        time.sleep(REPORT_SECONDS)
    tell("ended", job_id, trusted_until=trusted_until, complete=ended)
    while not (answer := report(job_id, status, proof)):
        time.sleep(REPORT_SECONDS)
    tell("recorded" if answer == 200 else "refused", job_id, answer=answer)


def work() -> None:
    """Ask for jobs, and run them one after the other."""
    while True:
        ask = {"capabilities": ["attempt_fencing_v1"], "wait": WAIT_SECONDS}
        status, job = call("/api/agent/next-job", ask, seconds=WAIT_SECONDS * 4)
        if status == 200:
            tell("given", job["job_id"])
            run(job)
        elif status != 204:
            time.sleep(REPORT_SECONDS)


def main() -> None:
    """Work in all slots, and send heartbeats beside that."""
    for _ in range(SLOTS):
        threading.Thread(target=work, daemon=True).start()
    tell("ready")
    while True:
        call("/api/agent/heartbeat", {"info": {"slots": SLOTS}})
        time.sleep(REPORT_SECONDS)


if __name__ == "__main__":
    main()
