"""What a child says it did goes to the log of its job, in bounded lines."""

import json
from typing import Any

import pytest

from ade.sandbox.child_messages import MESSAGE_CHARS_MAX, ChildMessages


def heard(message: Any) -> list[tuple[str, bytes]]:
    """Return what the log hears of a message."""
    said: list[tuple[str, bytes]] = []
    messages = ChildMessages(lambda _: None, lambda stream, data: said.append((str(stream), data)))
    messages.receive(json.dumps(message).encode())
    assert messages.kept == []
    return said


@pytest.mark.parametrize(
    ("step", "line"),
    [
        ("table.mapped table 1", b"table.mapped table 1\n"),
        ("two\nlines", b"two lines\n"),
        ("x" * 10_000, b"x" * MESSAGE_CHARS_MAX + b"\n"),
        ("\ud800", b"?\n"),
    ],
)
def test_a_step_is_one_line(step: str, line: bytes) -> None:
    assert heard({"step": step}) == [("step", line)]


@pytest.mark.parametrize("step", [1, ["a"], {"b": 1}])
def test_what_is_no_text_is_not_heard(step: Any) -> None:
    assert heard({"step": step}) == []
