"""Raw loops over PostgreSQL with psycopg 3: autocommit, so each statement is one transaction.

The statements are written so that PostgreSQL keeps one cached plan for them: a LIMIT or an array
of one as parameter would have it plan anew each time, for longer than the statement runs.
"""

from __future__ import annotations

import multiprocessing
import time
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Barrier

import psycopg

from bench.cases import BULK_ROWS, Case, Contestant, Sample

SCHEMA = """
CREATE TABLE jobs (
  id bigserial PRIMARY KEY,
  payload text NOT NULL,
  status text NOT NULL DEFAULT 'queued',
  created timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX jobs_queued ON jobs (id) WHERE status = 'queued';
"""
INSERT = "INSERT INTO jobs (payload) VALUES (%s)"
COPY = "COPY jobs (payload) FROM STDIN"
CLAIM = """
UPDATE jobs SET status = 'running' WHERE id = ANY(ARRAY(
  SELECT id FROM jobs WHERE status = 'queued' ORDER BY id LIMIT {batch} FOR UPDATE SKIP LOCKED
)) RETURNING id, payload
"""
FINISH = "UPDATE jobs SET status = 'done' WHERE id = ANY(%s)"
FINISH_ONE = "UPDATE jobs SET status = 'done' WHERE id = %s"
PICKUP_SECONDS_MAX = 10.0
WORKER_START_SECONDS_MAX = 30.0
Report = tuple[int, float, float]  # jobs done, when it began, when it ended


class RawPostgres(Contestant):
    name = "raw loop"
    database = "postgres"
    cases = (
        Case("enqueue"),
        Case("bulk"),
        *(
            Case("drain", batch, workers, jobs_max=20_000 if batch == 1 else None)
            for workers in (1, 4)
            for batch in (1, 10, 100, 500)
        ),
        Case("pickup"),
    )

    def __init__(self, url: str) -> None:
        super().__init__(url)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(SCHEMA)

    def enqueue(self, count: int) -> Sample:
        with connect(self.url) as connection, connection.cursor() as cursor:
            began = time.perf_counter()
            for number in range(count):
                cursor.execute(INSERT, (f'{{"n": {number}}}',))
            return Sample(count, time.perf_counter() - began)

    def enqueue_bulk(self, count: int) -> Sample:
        with connect(self.url) as connection, connection.cursor() as cursor:
            began = time.perf_counter()
            for start in range(0, count, BULK_ROWS):
                numbers = range(start, min(start + BULK_ROWS, count))
                with cursor.copy(COPY) as copy:
                    copy.write("".join(f'{{"n": {number}}}\n' for number in numbers))
            return Sample(count, time.perf_counter() - began)

    def drain(self, count: int, batch: int, workers: int) -> Sample:
        share = count // workers
        fork = multiprocessing.get_context("fork")
        ready, reports = fork.Barrier(workers), fork.SimpleQueue()
        order = (self.url, share, batch, ready, reports)
        crew = [fork.Process(target=drain_share, args=order, daemon=True) for _ in range(workers)]
        for worker in crew:
            worker.start()
        for worker in crew:
            worker.join()
        if any(worker.exitcode for worker in crew):
            raise RuntimeError("a worker of the raw loop failed")
        done, began, ended = zip(*(reports.get() for _ in crew), strict=True)
        return Sample(sum(done), max(ended) - min(began))

    def pickup(self, count: int) -> Sample:
        latencies = []
        with connect(self.url) as client, connect(self.url) as worker:
            worker.execute("LISTEN jobs")
            for _ in range(count):
                began = time.perf_counter()
                client.execute(INSERT, ("{}",))
                client.execute("NOTIFY jobs")
                for _notice in worker.notifies(timeout=PICKUP_SECONDS_MAX, stop_after=1):
                    pass
                [(job, _payload)] = worker.execute(CLAIM.format(batch=1)).fetchall()
                latencies.append(time.perf_counter() - began)
                worker.execute(FINISH_ONE, (job,))
        return Sample(count, sum(latencies), tuple(latencies))


def connect(url: str) -> psycopg.Connection[tuple]:
    return psycopg.connect(url, autocommit=True, prepare_threshold=0)


def drain_share(
    url: str, count: int, batch: int, ready: Barrier, reports: SimpleQueue[Report]
) -> None:
    """Claim and finish until a worker's share is done or the backlog ends."""
    claim = CLAIM.format(batch=batch)
    with connect(url) as connection, connection.cursor() as cursor:
        ready.wait(WORKER_START_SECONDS_MAX)
        began = time.perf_counter()  # one clock for all processes of a machine
        done = 0
        while done < count:
            claimed = [job for job, _payload in cursor.execute(claim).fetchall()]
            if not claimed:
                break
            if batch == 1:
                cursor.execute(FINISH_ONE, claimed)
            else:
                cursor.execute(FINISH, (claimed,))
            done += len(claimed)
        reports.put((done, began, time.perf_counter()))
