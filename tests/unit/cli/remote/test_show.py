"""What people are shown."""

from datetime import UTC, datetime

import pytest
from rich.text import Text

from ade.cli.remote.inputs import named_values
from ade.cli.remote.show import cell, duration, local_time, printable, size, status
from ade.cli.remote.watch import WORD_COLUMNS_MAX, short


@pytest.mark.parametrize(
    ("milliseconds", "written"),
    [
        (None, ""),
        (0, "0.00 s"),
        (1234, "1.23 s"),
        (59_999, "60.00 s"),
        (61_000, "1 min 1 s"),
        (3_723_000, "1 h 2 min"),
    ],
)
def test_durations(milliseconds: float | None, written: str) -> None:
    assert duration(milliseconds) == written


@pytest.mark.parametrize(
    ("count", "written"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (5 * 1024**4, "5.0 TiB"),
        (1024**5, "1024.0 TiB"),
    ],
)
def test_sizes(count: int, written: str) -> None:
    assert size(count) == written


def test_nothing_from_elsewhere_controls_the_terminal() -> None:
    assert printable("a\x1b[2Jb\x07\u202ec\td\n") == "a�[2Jb��c\td\n"
    assert cell("[bold]x[/]").plain == "[bold]x[/]"
    assert short("a\r\nb   c") == "a b c"
    assert len(short("x" * 500)) == WORD_COLUMNS_MAX


def test_cells_of_every_kind() -> None:
    assert [cell(one).plain for one in (None, 3, ["a", "b"], {"a": 1})] == ["", "3", "a, b", "a 1"]
    at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert cell(at).plain == local_time(at)
    assert cell(Text("t", "red")).style == "red"
    assert status("failed").style == "bold red"
    assert status("something new").style == ""


def test_values_are_json_where_they_can_be() -> None:
    given = ["a=1", "b=[1]", "c=text", "d=null", "e=", "f=x=y", 'g="1"']
    assert named_values(given, "-i") == {
        "a": 1,
        "b": [1],
        "c": "text",
        "d": None,
        "e": "",
        "f": "x=y",
        "g": "1",
    }
