"""The HTTP side of the submission service: read the headers, and send its answers.

`POST .../jobs` and `POST .../jobs/batch` read the raw body, validate it with a compiled schema and
write the answer as text; nothing of FastAPI's machinery runs. What arrives together is committed
together (`ade.store.group_commit`).
"""

import re
from typing import NamedTuple

from starlette.types import Receive, Scope

from ade.app.job_requests import Caller
from ade.app.submission import Answer, ClientRequest, Prepared
from ade.domain.errors import InvalidRequest
from ade.http.auth import Grant, Role
from ade.http.batch import JobTemplate, batch_text
from ade.http.body import read_body
from ade.http.door import Door
from ade.http.edge import trace_id_in
from ade.http.reply import Reply
from ade.http.views import JobView
from ade.stages.submit.model import Accepted

WAIT_SECONDS_MAX = 60
BATCH_BODIES_MAX = 32
KEY_CHARS_MAX = 200
REPLAYED = (b"idempotency-replayed", b"true")
_WAIT = re.compile(rb"(?:^|[,;\s])wait=(\d{1,9})(?:$|[,;\s])", re.IGNORECASE)
_REPRESENTATION = re.compile(rb"(?:^|[,;\s])return=representation(?:$|[,;\s])", re.IGNORECASE)
_KEY = re.compile(r"[ -~]{1,200}")


class Preferences(NamedTuple):
    """Hold the headers that say how a request should be answered (RFC 7240)."""

    wait_seconds: int = 0
    wants_result: bool = False
    idempotency_key: str | None = None


def client_request(scope: Scope, grant: Grant, endpoint: str, body: bytes = b"") -> ClientRequest:
    """Describe a request that creates work to the submission service."""
    preferences = _preferences(scope)
    return ClientRequest(
        caller=caller_of(grant),
        endpoint=endpoint,
        body=body,
        idempotency_key=preferences.idempotency_key,
        wait_seconds=preferences.wait_seconds,
        wants_result=preferences.wants_result,
    )


def caller_of(grant: Grant) -> Caller:
    """Return who asks, as the submission service knows them."""
    return Caller(grant.workspace.id, grant.user_id)


def reply_with(request: ClientRequest, answer: Answer) -> Reply:
    """Turn the service's answer into an HTTP response."""
    headers = [(b"location", answer.location.encode())]
    if answer.is_replayed:
        headers.append(REPLAYED)
    if answer.has_waited:
        applied = b"wait=%d" % request.wait_seconds
        if request.wants_result:
            applied += b", return=representation"
        headers.append((b"preference-applied", applied))
    return Reply(answer.status, answer.body.encode(), tuple(headers))


class JobSubmissions:
    """Answer the routes that take jobs of the execution contract."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._body_bytes_max = door.settings.payload_max_kb * 1024

    async def submit_one(self, scope: Scope, receive: Receive, workspace: str) -> Reply:
        """Submit one job."""
        grant = await self._door.gatekeeper.grant(scope, workspace, Role.EDITOR)
        return await self.submit_as(scope, receive, grant)

    async def submit_as(
        self, scope: Scope, receive: Receive, grant: Grant, target_id: str | None = None
    ) -> Reply:
        """Submit one job for an authorized client, on a target if one is named."""
        door = self._door
        body = await read_body(scope, receive, self._body_bytes_max)
        endpoint = "POST jobs" if target_id is None else f"POST targets/{target_id}/jobs"
        request = client_request(scope, grant, endpoint, body)

        async def prepare() -> Prepared:
            parsed = door.job_requests.parse(body)
            submission = await door.submissions.submission_of(request.caller, parsed, target_id)
            return Prepared(submission, JobView(door, grant))

        return reply_with(request, await door.submissions.submit(request, prepare))

    async def submit_batch(self, scope: Scope, receive: Receive, workspace: str) -> Reply:
        """Submit many jobs in one transaction; each is accepted or refused by itself."""
        door = self._door
        grant = await door.gatekeeper.grant(scope, workspace, Role.EDITOR)
        body = await read_body(scope, receive, self._body_bytes_max * BATCH_BODIES_MAX)
        request = client_request(scope, grant, "POST jobs/batch")
        items = door.job_requests.parse_batch(body)
        del body  # megabytes that another request can use while this one waits
        outcomes = await door.submissions.submit_batch(request, items, JobView(door, grant))
        template = JobTemplate(grant.workspace.slug, safe_mode=door.safe_mode)
        text = batch_text(outcomes, template, trace_id_in(scope))
        accepted = [outcome for outcome in outcomes if isinstance(outcome, Accepted)]
        is_replayed = accepted and all(one.replayed is not None for one in accepted)
        headers = (REPLAYED,) if is_replayed else ()
        return Reply(207, text.encode(), headers)


def _preferences(scope: Scope) -> Preferences:
    """Read how long the client would wait and for what, and its Idempotency-Key."""
    wait_seconds, wants_result, key = 0, False, None
    for name, value in scope["headers"]:
        if name == b"prefer":
            wait = _WAIT.search(value)
            if wait is not None:
                wait_seconds = min(int(wait[1]), WAIT_SECONDS_MAX)
            wants_result = wants_result or _REPRESENTATION.search(value) is not None
        elif name == b"idempotency-key":
            key = value.decode("latin-1")
            if not _KEY.fullmatch(key):
                raise InvalidRequest(
                    f"Idempotency-Key has 1 to {KEY_CHARS_MAX} printable ASCII characters.",
                    errors=[{"field": "Idempotency-Key", "message": "not allowed"}],
                )
    return Preferences(wait_seconds, wants_result, key)
