"""Raw loops over SQLite: WAL, synchronous=FULL, each statement or bulk insert one transaction."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bench.cases import BULK_ROWS, Case, Contestant, Sample

SCHEMA = """
CREATE TABLE jobs (
  id integer PRIMARY KEY,
  payload text NOT NULL,
  status text NOT NULL DEFAULT 'queued',
  created text NOT NULL DEFAULT CURRENT_TIMESTAMP
);
CREATE INDEX jobs_queued ON jobs (id) WHERE status = 'queued';
"""
INSERT = "INSERT INTO jobs (payload) VALUES (?)"
CLAIM = """
UPDATE jobs SET status = 'running' WHERE id IN (
  SELECT id FROM jobs WHERE status = 'queued' ORDER BY id LIMIT ?
) RETURNING id, payload
"""


class RawSqlite(Contestant):
    name = "raw loop"
    database = "sqlite"
    cases = (
        Case("enqueue"),
        Case("bulk"),
        *(Case("drain", batch, jobs_max=20_000 if batch == 1 else None) for batch in (1, 10, 100)),
        Case("pickup"),
    )

    def __init__(self, url: str) -> None:
        super().__init__(url)
        with connected(url) as connection:
            connection.executescript(SCHEMA)

    def enqueue(self, count: int) -> Sample:
        with connected(self.url) as connection:
            began = time.perf_counter()
            for number in range(count):
                connection.execute(INSERT, (f'{{"n": {number}}}',))
            return Sample(count, time.perf_counter() - began)

    def enqueue_bulk(self, count: int) -> Sample:
        with connected(self.url) as connection:
            began = time.perf_counter()
            for start in range(0, count, BULK_ROWS):
                numbers = range(start, min(start + BULK_ROWS, count))
                connection.execute("BEGIN IMMEDIATE")
                connection.executemany(INSERT, ((f'{{"n": {n}}}',) for n in numbers))
                connection.execute("COMMIT")
            return Sample(count, time.perf_counter() - began)

    def drain(self, count: int, batch: int, workers: int) -> Sample:
        with connected(self.url) as connection:
            began = time.perf_counter()
            done = 0
            while done < count:
                claimed = connection.execute(CLAIM, (min(batch, count - done),)).fetchall()
                if not claimed:
                    raise RuntimeError(f"the backlog ended after {done:,} of {count:,} jobs")
                finish(connection, claimed)
                done += len(claimed)
            return Sample(done, time.perf_counter() - began)

    def pickup(self, count: int) -> Sample:
        """The worker sees another connection's commit by polling PRAGMA data_version."""
        latencies = []
        with connected(self.url) as client, connected(self.url) as worker:
            for _ in range(count):
                seen = data_version(worker)
                began = time.perf_counter()
                client.execute(INSERT, ("{}",))
                while data_version(worker) == seen:
                    time.sleep(0)
                claimed = worker.execute(CLAIM, (1,)).fetchall()
                latencies.append(time.perf_counter() - began)
                finish(worker, claimed)
        return Sample(count, sum(latencies), tuple(latencies))


def finish(connection: sqlite3.Connection, claimed: list[tuple]) -> None:
    places = ",".join("?" * len(claimed))
    connection.execute(
        f"UPDATE jobs SET status = 'done' WHERE id IN ({places})", [row[0] for row in claimed]
    )


def data_version(connection: sqlite3.Connection) -> int:
    return connection.execute("PRAGMA data_version").fetchone()[0]


@contextmanager
def connected(path: str) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        yield connection
    finally:
        connection.close()
