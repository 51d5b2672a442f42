"""Names for work: the same inputs have the same key on every machine and Python.

Canonical JSON: keys sorted, no white space, UTF-8 as it is, and numbers by value: `1`, `1.0` and
`1e0` are one number. NaN and the infinities are not JSON and are refused.
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
# To copy what was begun takes half as long as to begin.
_NOTHING = hashlib.sha256()
# A number outside of a string stands behind one of these; a match inside one only costs time.
_PERHAPS_A_FLOAT = re.compile(r"(?:^|[:,\[])-?\d+[.e]")


def _refuse(value: Any) -> Any:
    raise TypeError(f"{type(value).__name__} is not JSON")


_quoted = json.encoder.encode_basestring
# Made once: `json.dumps` would make one for each call, which costs as much as its work.
_encode: Any = json.encoder.c_make_encoder(  # type: ignore[attr-defined]
    None, _refuse, json.encoder.encode_basestring, None, ":", ",", True, False, False
)


def _canonical(value: Any) -> str:
    try:
        text = "".join(_encode(value, 0))
        # Python spells every float with one of these.
        spelled = "." in text or "e+" in text or "e-" in text
        if spelled and _PERHAPS_A_FLOAT.search(text):
            text = "".join(_encode(_plain(value), 0))
        return text
    except (ValueError, TypeError, RecursionError) as error:
        raise InvalidRequest(f"The value cannot be written as JSON: {_reason(error)}") from None


def _sha256(data: bytes) -> str:
    begun = _NOTHING.copy()
    begun.update(data)
    return begun.hexdigest()


def work_id(workspace_id: str, execution_key: str) -> str:
    """Name a piece of work of a workspace in few characters, of which each costs in an index."""
    begun = _begun(workspace_id).copy()
    begun.update(execution_key.encode())
    named: str = begun.hexdigest()
    return named[:WORK_ID_CHARS]


@lru_cache(maxsize=1024)
def _begun(workspace_id: str) -> Any:
    return hashlib.sha256(f"{workspace_id} ".encode())


def canonical_json(value: Any) -> bytes:
    """Spell a JSON value in its one canonical way."""
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
    return "it holds something that JSON has no word for (such as NaN)."


def digest(value: Any) -> str:
    """Return `sha256:<hex>` of a value's canonical JSON."""
    return "sha256:" + _sha256(canonical_json(value))


class Work:
    """Name pieces of work that have job type, outputs and environment in common."""

    def __init__(self, job_type: str, output_spec: Any, env_version: str) -> None:
        # What `digest` would make of one object with all members; their names stand in order.
        self._before_inputs = f',"env_version":{_quoted(env_version)},"inputs":'
        self._behind_inputs = (
            f',"job_type":{_quoted(job_type)},"output_spec":{_canonical(output_spec)}'
            ',"target_object_ids":'
        )

    def key(
        self, document_revision_id: str | None, target_object_ids: list[str], inputs: Any
    ) -> str:
        """Name one piece of work by all that its result may depend on (seed 003, 5.1)."""
        revision = "null" if document_revision_id is None else _quoted(document_revision_id)
        objects = _canonical(target_object_ids) if target_object_ids else "[]"
        text = (
            f'{{"document_revision_id":{revision}{self._before_inputs}{_canonical(inputs)}'
            f"{self._behind_inputs}{objects}}}"
        )
        return "sha256:" + _sha256(_utf8(text))


def fingerprint(*, content_digest: str, engine_version: str, interpreter: str) -> str:
    """Name a build by all that its environment may depend on."""
    return digest({"content": content_digest, "engine": engine_version, "interpreter": interpreter})
