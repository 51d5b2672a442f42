"""Receive a file: checked against its digest, resumed where it was cut."""

import hashlib
import random

from ade.client.core.exchange import unreachable
from ade.client.core.problems import error_of, retry_after_seconds
from ade.client.core.retry import Refusal, Retrying, RetryPolicy
from ade.client.core.steps import (
    Call,
    Close,
    Emit,
    Now,
    Open,
    Read,
    Reply,
    Request,
    Sleep,
    TransportFailed,
)
from ade.client.errors import ClientError, DigestMismatch

SHA256 = "sha256:"
# A digest is that of the bytes as they are stored, not as a proxy may compress them.
WHOLE = {"Accept": "*/*", "Accept-Encoding": "identity"}


def download(path: str, policy: RetryPolicy, digest: str | None = None) -> Call[None]:
    """Emit the bytes of a file in pieces; raise DigestMismatch at the end if they are others.

    Without `digest` the ETag of the answer is the digest. A download that is cut goes on where it
    was, with `If-Range`, so that two states of a file are never mixed.
    """
    retrying = Retrying(policy, repeatable=True, random=random.random)
    computed, done, tag = hashlib.sha256(), 0, ""
    while True:
        headers = {"Range": f"bytes={done}-", "If-Range": tag} if done and tag else {}
        request = Request("GET", path, headers={**WHOLE, **headers})
        error: ClientError
        try:
            reply: Reply = yield Open(request)
            if reply.status < 400:
                if done and reply.status != 206:
                    yield Close()
                    raise DigestMismatch(f"{path} changed while it was downloaded; try again.")
                tag = reply.headers.get("etag", tag)
                while piece := (yield Read()):
                    computed.update(piece)
                    done += len(piece)
                    retrying.made_progress()
                    yield Emit(piece)
                _check(path, digest or tag.strip('"'), f"{SHA256}{computed.hexdigest()}")
                return
            error = error_of(request, reply)
            refusal = Refusal(reply.status, retry_after_seconds(reply))
        except TransportFailed as failed:
            if done and not tag:  # what came cannot be told from another state of the file
                raise unreachable(failed) from None
            error, refusal = unreachable(failed), Refusal(sent=failed.sent)
        pause = retrying.after(refusal, (yield Now()))
        if pause is None:
            raise error
        yield Sleep(pause)


def _check(path: str, expected: str, found: str) -> None:
    if expected.startswith(SHA256) and expected != found:
        raise DigestMismatch(f"{path} should be {expected}, and {found} arrived.")
