"""The key of an agent: a file that only its user can read, made by trading a one-time code."""

import asyncio
import hashlib
import os
from collections.abc import Generator
from pathlib import Path

import httpx
import structlog

from ade.agents.contract_calls import trade_code
from ade.domain.errors import Unauthenticated

KEY_CHARS_MAX = 500
log = structlog.get_logger()


class KeyFile(httpx.Auth):
    """Send the key of a file; after 401 the file is read again, as the key may be another one."""

    def __init__(self, path: Path, worker_id: str) -> None:
        self._path = path
        self._worker_id = worker_id
        self._key = read_key(path)

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Add the key to a request."""
        self._sign(request)
        answer = yield request
        if answer.status_code == 401:
            known, self._key = self._key, read_key(self._path)
            if known != self._key:
                self._sign(request)
                yield request

    def _sign(self, request: httpx.Request) -> None:
        request.headers["Authorization"] = f"Bearer {self._key}"
        request.headers["Agent-Name"] = self._worker_id


def read_key(path: Path) -> str:
    """Read a key, or raise Unauthenticated with what to do."""
    try:
        key = path.read_text(encoding="utf-8")[:KEY_CHARS_MAX].strip()
    except OSError as error:
        raise Unauthenticated(
            f"The key file {path} cannot be read: {error.strerror}. Enrol this agent on the server"
            " and start it with the code once."
        ) from None
    if not key.isascii() or not key.isprintable() or not key:
        raise Unauthenticated(f"The key file {path} does not hold a key.")
    return key


async def enrol(http: httpx.AsyncClient, code: str, path: Path) -> None:
    """Trade a code for a key and keep it; a code that was traded before is left alone.

    A key that is there stays if the code is not valid, since it may have been traded for that key.
    """
    traded = path.with_name(f"{path.name}.code")
    digest = hashlib.sha256(code.encode()).hexdigest()
    if await asyncio.to_thread(_read, traded) == digest:
        return
    try:
        key = await trade_code(http, code)
    except Unauthenticated as error:
        if await asyncio.to_thread(_read, path) is None:
            raise
        log.warning("the code is not valid; the key that is there is used", reason=error.detail)
        return
    await asyncio.to_thread(_keep, path, key)
    await asyncio.to_thread(_keep, traded, digest)


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return None


def _keep(path: Path, text: str) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(f"{text}\n")
        file.flush()
        os.fsync(file.fileno())
    unfinished.rename(path)
