"""Detect the delimiter of a text file.

It is the character that splits the lines most consistently into the same number of cells, and into
cells that look like numbers, dates or words. Both must hold, because a comma also occurs in numbers
and sentences.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter

DELIMITERS = ",;\t|"
DEFAULT = ","
RECORDS_MAX = 300
CELL_CHARS_MAX = 200
CUT_SHARE_MIN = 0.3  # of the lines; a rarer character is punctuation
LEAST = 1e-3

_KNOWN = re.compile(
    r"""\s*(?:
        [-+(]?\s*[$€£¥]?\s*\d{1,3}(?:[,. '\u00a0]\d{3})+(?:[.,]\d+)?\s*[%€)]?   # 1,234,567.89
        | [-+(]?\s*[$€£¥]?\s*(?:\d+(?:[.,]\d+)?|[.,]\d+)(?:[eE][-+]?\d+)?\s*[%€)]?
        | \d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:[ T]\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?)?
        | \d{1,2}:\d{2}(?::\d{2})?
        | [^\s@,;|]+@[^\s@,;|]+\.[a-zA-Z]+
        | https?://\S+
        | [\w][^,;|\t]*
        )?\s*""",
    re.VERBOSE,
)


def detect_delimiter(sample: str) -> str:
    """Return the most likely delimiter of a text, given its beginning."""
    scores = {delimiter: _score(sample, delimiter) for delimiter in DELIMITERS}
    best = max(scores, key=lambda delimiter: scores[delimiter])
    return best if scores[best] > LEAST else DEFAULT


def _score(sample: str, delimiter: str) -> float:
    if delimiter not in sample:
        return 0.0
    records = []
    try:
        for record in csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter):
            if record:
                records.append(record)
            if len(records) >= RECORDS_MAX:
                break
    except csv.Error:
        pass  # score the records that were read before the error
    widths = Counter(len(record) for record in records)
    if len(records) - widths[1] < CUT_SHARE_MIN * len(records):
        return 0.0
    regular = sum(count * (width - 1) / width for width, count in widths.items()) / len(
        widths or "1"
    )
    cells = [cell for record in records for cell in record]
    known = sum(
        len(cell) <= CELL_CHARS_MAX and _KNOWN.fullmatch(cell) is not None for cell in cells
    )
    return regular * max(known / max(len(cells), 1), LEAST)
