"""The page on cells: what it shows as sent is sent, and what it shows as answered is answered."""

import json
import re
from collections.abc import Iterator
from typing import Any

from tests.system.server import Start
from tests.unit import test_docs as docs

PAGE = docs.DOCS / "how-to" / "run-a-cell.md"


def examples() -> Iterator[tuple[str, dict[str, Any]]]:
    """Find each cell of the page with what is shown below it."""
    body: str | None = None
    blocks = re.findall(r"^```(sh|json)\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    for language, text in blocks:
        if language == "sh":
            body = docs._request(docs._first_command(text.replace("\\\n", " ")))[2]
        elif body is not None:
            yield body, json.loads(text)


def difference(shown: Any, found: Any) -> Any:
    """Return what is shown and is not so; what is not shown may be as it likes."""
    if isinstance(shown, list) and isinstance(found, list) and len(shown) == len(found):
        return [d for d in map(difference, shown, found) if d is not None] or None
    if not isinstance(shown, dict) or not isinstance(found, dict):
        return None if shown == found else (shown, found)
    differing = {name: difference(value, found.get(name)) for name, value in shown.items()}
    return {name: value for name, value in differing.items() if value is not None} or None


def test_every_cell_of_the_page_comes_out_as_shown(start: Start) -> None:
    server = start.server()
    shown = list(examples())
    assert len(shown) == 7
    asked = {"Content-Type": "application/json", "Prefer": "wait=60"}
    for body, expected in shown:
        path = "/api/v1/workspaces/default/jobs"
        answer = server.http.post(path, content=body, headers=asked, timeout=90)
        assert answer.status_code == 200, answer.text
        assert difference(expected, server.result(answer.json())) is None
