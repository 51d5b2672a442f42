"""Make a dataclass of a JSON object, whatever version of the server wrote it.

A field that the answer lacks has its default; one that this version does not know is left to
`raw`, which holds the whole answer. Words such as statuses stay texts, so new ones are no error.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Self


@dataclass(frozen=True)
class Answer:
    """One JSON object of an answer."""

    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False, kw_only=True)

    @classmethod
    def of(cls, given: Mapping[str, Any], **more: Any) -> Self:
        """Read a JSON object; `more` are fields that are not in it."""
        known = {
            one.name: _value(given[name], one.metadata)
            for one in fields(cls)
            if (name := one.metadata.get("name", one.name)) in given and one.name != "raw"
        }
        return cls(**known, **more, raw=given)


def named(name: str, default: Any = None) -> Any:
    """Declare a field that has another name in the JSON."""
    return field(default=default, metadata={"name": name})


def time(default: Any = None) -> Any:
    """Declare a field that is a time."""
    return field(default=default, metadata={"read": read_time})


def nested(kind: Any) -> Any:
    """Declare a field that is an object of a class, or null."""
    return field(default=None, metadata={"read": kind.of})


def listed(kind: Any) -> Any:
    """Declare a field that is a list of objects of a class."""
    return field(default=(), metadata={"read": lambda found: tuple(kind.of(one) for one in found)})


def read_time(text: str) -> datetime | None:
    """Read a time of RFC 3339; None if this version cannot read it."""
    try:
        return datetime.fromisoformat(text)
    except (ValueError, TypeError):
        return None


def _value(given: Any, metadata: Mapping[str, Any]) -> Any:
    read = metadata.get("read")
    if read is not None and given is not None:
        return read(given)
    return tuple(given) if isinstance(given, list) else given
