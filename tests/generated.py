"""Parts of documentation pages that are made from the code, between two marks."""

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

Generated = Mapping[str, tuple[Path, Callable[[], str]]]


def table(head: str, rows: Iterable[Iterable[str]]) -> str:
    """Write a table below its first line."""
    lines = [head, re.sub(r"[^|]+", " --- ", head)]
    return "\n".join([*lines, *("| " + " | ".join(cells) + " |" for cells in rows)])


def found(name: str, text: str) -> re.Match[str]:
    """Find a generated part of a page."""
    match = re.search(rf"<!-- generated: {name} -->\n(.*?)<!-- end -->", text, re.DOTALL)
    assert match is not None, f"there is no part {name!r}"
    return match


def check(generated: Generated, name: str, regenerate: str) -> None:
    """Assert that a part is what the code says."""
    page, make = generated[name]
    assert found(name, page.read_text())[1] == make() + "\n", regenerate


def write(generated: Generated) -> None:
    """Write every part into its page."""
    for name, (page, make) in generated.items():
        text = page.read_text()
        part = found(name, text)
        page.write_text(text[: part.start(1)] + make() + "\n" + text[part.end(1) :])
