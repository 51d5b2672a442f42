"""Keys of work: the same inputs have the same key on every machine and Python.

Canonical JSON: keys sorted, no white space, UTF-8 as it is, and numbers by value: `1`, `1.0` and
`1e0` are one number. NaN and the infinities are not JSON and are refused.

The inputs of an execution key are stricter, because code sees the type of a number: `1` is an `int`
there and `1.0` a `float`, so they are different work. `1.0` and `1e0` are the same `float`.
"""

import hashlib
import json
import math
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from ade.domain.errors import InvalidRequest

WORK_ID_CHARS = 32
# Copying an empty hash takes half as long as making one.
_EMPTY_HASH = hashlib.sha256()
# A number outside a string follows one of these; a match inside a string only costs time.
_PERHAPS_A_FLOAT = re.compile(r"(?:^|[:,\[])-?\d+[.e]")


def _refuse(value: Any) -> Any:
    raise TypeError(f"{type(value).__name__} is not JSON")


_quoted = json.encoder.encode_basestring
# Made once: `json.dumps` makes an encoder for each call, which takes as long as the encoding.
_encode: Any = json.encoder.c_make_encoder(  # type: ignore[attr-defined]
    None, _refuse, json.encoder.encode_basestring, None, ":", ",", True, False, False
)


def _canonical(value: Any) -> str:
    text = _typed(value)
    # Python writes every float with one of these.
    may_have_float = "." in text or "e+" in text or "e-" in text
    if may_have_float and _PERHAPS_A_FLOAT.search(text):
        text = _typed(_plain(value))
    return text


def _typed(value: Any) -> str:
    """Return JSON in which an `int` and a `float` of the same value differ, as they do to code."""
    try:
        return "".join(_encode(value, 0))
    except (ValueError, TypeError, RecursionError) as error:
        raise InvalidRequest(f"The value cannot be written as JSON: {_reason(error)}") from None


def _sha256(data: bytes) -> str:
    hashed = _EMPTY_HASH.copy()
    hashed.update(data)
    return hashed.hexdigest()


def work_id(workspace_id: str, execution_key: str) -> str:
    """Name a piece of work of a workspace; short, to save space in an index."""
    hashed = _hash_of_workspace(workspace_id).copy()
    hashed.update(execution_key.encode())
    named: str = hashed.hexdigest()
    return named[:WORK_ID_CHARS]


@lru_cache(maxsize=1024)
def _hash_of_workspace(workspace_id: str) -> Any:
    return hashlib.sha256(f"{workspace_id} ".encode())


def canonical_json(value: Any) -> bytes:
    """Return the canonical JSON of a value."""
    return _utf8(_canonical(value))


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InvalidRequest(
            "The value cannot be written as JSON: it holds half of a surrogate pair."
        ) from None


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return int(value) if math.isfinite(value) and value.is_integer() else value
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply."
    return "it holds a value that JSON does not have (such as NaN)."


def digest(value: Any) -> str:
    """Return `sha256:<hex>` of a value's canonical JSON."""
    return "sha256:" + _sha256(canonical_json(value))


class Work:
    """Make execution keys for one job type, output specification and environment."""

    def __init__(self, job_type: str, output_spec: Any, env_version: str) -> None:
        # The text that `digest` makes of an object with all members, whose names are sorted; only
        # the numbers of the inputs keep their types.
        self._before_inputs = f',"env_version":{_quoted(env_version)},"inputs":'
        self._after_inputs = (
            f',"job_type":{_quoted(job_type)},"output_spec":{_canonical(output_spec)}'
            ',"target_object_ids":'
        )

    def key(
        self, document_revision_id: str | None, target_object_ids: list[str], inputs: Any
    ) -> str:
        """Return the key of all that the result of one piece of work depends on."""
        revision = "null" if document_revision_id is None else _quoted(document_revision_id)
        objects = _canonical(target_object_ids) if target_object_ids else "[]"
        text = (
            f'{{"document_revision_id":{revision}{self._before_inputs}{_typed(inputs)}'
            f"{self._after_inputs}{objects}}}"
        )
        return "sha256:" + _sha256(_utf8(text))


def fingerprint(*, content_digest: str, engine_version: str, interpreter: str) -> str:
    """Return the fingerprint of a build: all that its environment may depend on."""
    return digest({"content": content_digest, "engine": engine_version, "interpreter": interpreter})
