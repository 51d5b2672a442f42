"""Count words: this runs in the sandbox and imports nothing of ADE."""

import csv
import json
import re
from collections import Counter
from typing import Any

WORD = re.compile(r"\w+")
LINES_A_REPORT = 10_000


class NoText(Exception):
    """The file holds no text."""


def main(inputs: dict[str, Any], channel: Any) -> dict[str, Any]:
    """Count, report progress, leave a table; what is returned is the result."""
    counts: Counter[str] = Counter()
    try:
        with open(inputs["text"], encoding="utf-8") as text:
            for number, line in enumerate(text, start=1):
                counts.update(word.lower() for word in WORD.findall(line))
                if number % LINES_A_REPORT == 0:
                    channel.progress(number, 0, "lines read")
    except UnicodeDecodeError as error:
        raise NoText(f"byte {error.start} is not UTF-8") from None
    kept = [(word, n) for word, n in counts.most_common() if n >= inputs["at_least"]]
    for format_ in inputs["formats"]:
        write(kept, format_)
        channel.artifact(f"words.{format_}", kind="table", metadata={"rows": len(kept)})
    return {"words": sum(counts.values()), "distinct": len(counts), "kept": len(kept)}


def write(kept: list[tuple[str, int]], format_: str) -> None:
    """Leave a table in `artifacts/`."""
    with open(f"artifacts/words.{format_}", "w", encoding="utf-8", newline="") as file:
        if format_ == "json":
            json.dump(dict(kept), file)
        else:
            csv.writer(file).writerows([("word", "count"), *kept])
