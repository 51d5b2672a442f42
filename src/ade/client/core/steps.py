"""The steps that a call may ask a driver for, and what it is sent back."""

import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, Protocol, TypeVar

T = TypeVar("T")
# A call yields steps and returns a T.
Call = Generator[Any, Any, T]
Method = Literal["GET", "POST", "PUT", "DELETE"]
Query = Sequence[tuple[str, str | int]]


class Body(Protocol):
    """A request body that is sent in pieces, and again from its beginning when it is retried."""

    size_bytes: int

    def pieces(self) -> Iterator[bytes]:
        """Read it from its beginning."""
        ...


@dataclass(frozen=True)
class Request:
    """One HTTP request to a path below the address of the server."""

    method: Method
    path: str
    query: Query = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | Body | None = None
    # How long to wait for the next byte; None is the timeout of the client.
    timeout_seconds: float | None = None
    # Whether sending it twice does no more than sending it once.
    repeatable: bool = True


@dataclass(frozen=True)
class Reply:
    """What came back; the names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""

    def json(self) -> Any:
        """Read the body as JSON."""
        return json.loads(self.body)


@dataclass(frozen=True)
class Send:
    """Send a request and read its whole answer: is sent a `Reply`."""

    request: Request


@dataclass(frozen=True)
class Open:
    """Send a request and keep its answer open for `Read`; the body of an error is read at once."""

    request: Request


@dataclass(frozen=True)
class Read:
    """Read the next bytes of the open answer: is sent none at its end."""


@dataclass(frozen=True)
class Close:
    """Close the open answer."""


@dataclass(frozen=True)
class Sleep:
    """Wait."""

    seconds: float


@dataclass(frozen=True)
class Now:
    """Read the monotonic clock: is sent seconds."""


@dataclass(frozen=True)
class Emit:
    """Hand a value to whoever iterates over the call."""

    value: Any


class TransportFailed(Exception):
    """A request or its answer was lost; a driver raises it where the call waits."""

    def __init__(self, reason: str, *, sent: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        # Whether the server may have received the request.
        self.sent = sent


class Walk(Generic[T]):
    """Carry a call from step to step; a driver does what `step` says and notes what came of it."""

    def __init__(self, call: Call[T]) -> None:
        self._call = call
        self._answer: Any = None
        self._failure: TransportFailed | None = None
        self.result: T | None = None

    def next(self) -> Any:
        """Return the next step; None at the end, when `result` is set."""
        answer, failure = self._answer, self._failure
        self._answer = self._failure = None
        try:
            return self._call.send(answer) if failure is None else self._call.throw(failure)
        except StopIteration as done:
            self.result = done.value
            return None

    def note(self, answer: Any) -> None:
        """Note what came of the step."""
        self._answer = answer

    def fail(self, failure: TransportFailed) -> None:
        """Note that the step failed."""
        self._failure = failure

    def close(self) -> None:
        """End the call where it is."""
        self._call.close()
