"""The HTTP limit: FastAPI that validates a job and answers with one, without a database.

    python -m bench.http_baseline [--seconds 5]

runs it under uvicorn on the measured core and loads it from the other.
"""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from fastapi import FastAPI
from pydantic import BaseModel


class Submission(BaseModel):
    job_type: str
    inputs: dict[str, Any]
    priority: str = "normal"
    document_revision_id: str


class Batch(BaseModel):
    jobs: list[Submission]


class Job(BaseModel):
    job_id: str
    workspace_id: str
    job_type: str
    status: str
    priority: str
    target_id: str | None = None
    execution_key: str | None = None
    deduplicated: bool = False
    rerun_of: str | None = None
    attempt: int = 0
    stop_request: str | None = None
    submitted_by: str
    submitted_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    links: dict[str, str]


class Answer(BaseModel):
    items: list[Job]


app = FastAPI()


@app.post("/jobs", status_code=202)
async def submit(submission: Submission) -> Job:
    return accept(submission)


@app.post("/jobs/batch", status_code=207)
async def submit_batch(batch: Batch) -> Answer:
    return Answer(items=[accept(submission) for submission in batch.jobs])


def accept(submission: Submission) -> Job:
    job_id = str(uuid4())
    return Job(
        job_id=job_id,
        workspace_id="default",
        job_type=submission.job_type,
        status="queued",
        priority=submission.priority,
        submitted_by="bench",
        submitted_at=datetime.now(UTC),
        links={"self": f"/jobs/{job_id}", "events": f"/jobs/{job_id}/events"},
    )


def main() -> None:
    from bench.serving import HTTP_CASES, FastApiAlone, once

    parser = argparse.ArgumentParser(prog="python -m bench.http_baseline")
    parser.add_argument("--seconds", type=float, default=5.0)
    seconds = parser.parse_args().seconds
    for case in HTTP_CASES:
        sample = once(FastApiAlone(), case, "", seconds)
        print(f"{case.label}: {sample.jobs / sample.seconds:,.0f} jobs/s")


if __name__ == "__main__":
    main()
