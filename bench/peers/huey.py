"""Huey on SQLite, with fsync. It deletes a job when it takes it: a crash then loses the job."""

from __future__ import annotations

import queue
import threading
import time

from huey import SqliteHuey
from huey.consumer import Worker

from bench.cases import Case, Contestant, Sample

POLL_SECONDS = 0.001


class Huey(Contestant):
    name = "huey"
    database = "sqlite"
    cases = (Case("enqueue", jobs_max=10_000), Case("drain", jobs_max=20_000), Case("pickup"))

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.huey = SqliteHuey("bench", filename=url, fsync=True, results=False)
        self.started: queue.SimpleQueue[float] = queue.SimpleQueue()
        self.done = 0
        self.noop = self.huey.task()(self._noop)
        self.timed = self.huey.task()(self._timed)

    def _noop(self, number: int) -> None:
        self.done += 1

    def _timed(self) -> None:
        self.started.put(time.perf_counter())

    def fill(self, count: int) -> None:
        """Huey has no bulk enqueue; one transaction around the inserts spares the disk."""
        with self.huey.storage.db() as cursor:
            for number in range(count):
                data = self.huey.serialize_task(self.noop.s(number))
                cursor.execute(
                    "insert into task (queue, data, priority) values (?, ?, 0)", ("bench", data)
                )

    def enqueue(self, count: int) -> Sample:
        began = time.perf_counter()
        for number in range(count):
            self.noop(number)
        return Sample(count, time.perf_counter() - began)

    def drain(self, count: int, batch: int, workers: int) -> Sample:
        worker = self._worker(threading.Event())
        began = time.perf_counter()
        while self.done < count:
            worker.loop()
        return Sample(self.done, time.perf_counter() - began)

    def pickup(self, count: int) -> Sample:
        stop = threading.Event()
        worker = self._worker(stop)

        def work() -> None:
            while not stop.is_set():
                worker.loop()

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        latencies = []
        for _ in range(count):
            began = time.perf_counter()
            self.timed()
            latencies.append(self.started.get(timeout=10) - began)
            time.sleep(0.01)  # the worker goes back to polling
        stop.set()
        thread.join()
        return Sample(count, sum(latencies), tuple(latencies))

    def _worker(self, stop: threading.Event) -> Worker:
        return Worker(self.huey, stop, POLL_SECONDS, POLL_SECONDS, backoff=1)
