"""Clients that submit jobs to whichever server answers, and remember what was acknowledged."""

import random
import threading
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

import httpx
from tests.chaos.nemesis import Member
from tests.chaos.watch import SOURCE
from tests.system.cells import cell
from tests.system.server import JOBS, KEY

# A server may be frozen for some seconds, and gives a silent database up after some more.
ANSWER_SECONDS = 60.0
RETRY_SECONDS = 0.1
JOB_SECONDS = (0.0, 0.0, 0.3, 1.0, 4.0)
PAUSE_SECONDS = 0.3
TRY_AGAIN = {409, 503}


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """Hold what a client was promised: this token is this job."""

    token: str
    job_id: str


class Client(threading.Thread):
    """Submit one job after the other, each until it is acknowledged."""

    def __init__(self, name: str, members: list[Member], seed: int) -> None:
        super().__init__(daemon=True)
        self.acknowledged: list[Acknowledged] = []
        self.answers: Counter[str] = Counter()
        self.unexpected: list[str] = []
        self.longest_seconds = 0.0
        self.unacknowledged: str | None = None
        self._name = name
        self._members = members
        self._random = random.Random(f"{seed}-{name}")
        self._over = threading.Event()

    def stop(self) -> None:
        """Submit no more; the last job may stay without an acknowledgement."""
        self._over.set()
        self.join()

    def run(self) -> None:
        """Submit until stopped."""
        for number in range(10**9):
            token = f"{self._name}-{number}"
            parameters = {"token": token, "seconds": self._random.choice(JOB_SECONDS)}
            body = cell(SOURCE, parameters=parameters)
            self.unacknowledged = token
            while (job_id := self._submitted(token, body)) is None:
                if self._over.wait(RETRY_SECONDS):
                    return
            self.acknowledged.append(Acknowledged(token, job_id))
            self.unacknowledged = None
            if self._over.wait(PAUSE_SECONDS):
                return

    def _submitted(self, token: str, body: dict[str, Any]) -> str | None:
        """Submit to some server with a key: a second try must find the job of the first."""
        servers = [member.server for member in self._members if member.server is not None]
        headers = {"Authorization": f"Bearer {KEY}", "Idempotency-Key": token}
        began = time.monotonic()
        try:
            server = self._random.choice(servers)
            answer = httpx.post(
                server.url + JOBS, json=body, headers=headers, timeout=ANSWER_SECONDS
            )
        except httpx.TimeoutException:
            self.unexpected.append(f"{token}: no answer within {ANSWER_SECONDS:g} s")
            return None
        except httpx.HTTPError as error:
            self.answers[type(error).__name__] += 1
            return None  # nothing was promised
        finally:
            self.longest_seconds = max(self.longest_seconds, time.monotonic() - began)
        self.answers[str(answer.status_code)] += 1
        if answer.status_code in {200, 202}:
            return str(answer.json()["job_id"])
        if answer.status_code not in TRY_AGAIN:
            self.unexpected.append(f"{token}: {answer.status_code} {answer.text[:300]}")
        return None
