"""Write `ade.client.sync` from `ade.client.aio`, so that both say the same.

.venv/bin/python -m scripts.write_sync_client
"""

import re
import subprocess
import sys
from pathlib import Path

CLIENT = Path(__file__).parent.parent / "src" / "ade" / "client"
# Written by hand in both: what waits for the network, and what does several things at once.
BY_HAND = frozenset({"__init__.py", "driver.py", "mapping.py"})
# What is needed with asyncio only: comprehensions and loops that collect.
FIXED = ["check", "--select=I,C416,UP028", "--fix", "--unsafe-fixes", "--quiet"]
HEAD = "# Written from ade/client/aio/{name} by scripts/write_sync_client.py; edit that instead.\n"
REPLACED = (
    (r"\bAsync([A-Z]\w*)", r"\1"),
    (r"\basync (def|for|with)\b", r"\1"),
    (r"\bawait ", ""),
    (r"ade\.client\.aio", "ade.client.sync"),
    (r"__aenter__", "__enter__"),
    (r"__aexit__", "__exit__"),
    (r"The client for asyncio: ", "The client for ordinary programs: "),
    (r"about one workspace, with asyncio\.", "about one workspace; threads may share it."),
)


def sync_modules() -> dict[str, str]:
    """Return the text of each module of the client without asyncio, by its file name."""
    names = sorted(path.name for path in (CLIENT / "aio").glob("*.py") if path.name not in BY_HAND)
    return {name: _formatted(name, _sync(name)) for name in names}


def _sync(name: str) -> str:
    text = (CLIENT / "aio" / name).read_text(encoding="utf-8")
    for pattern, replacement in REPLACED:
        text = re.sub(pattern, replacement, text)
    return HEAD.format(name=name) + text


def _formatted(name: str, text: str) -> str:
    """Format a module as the other files are."""
    file = str(CLIENT / "sync" / name)
    ruff = str(Path(sys.executable).parent / "ruff")
    for command in (FIXED, ["format", "--quiet"]):
        done = subprocess.run(
            [ruff, *command, "--stdin-filename", file, "-"],
            input=text,
            capture_output=True,
            text=True,
            check=True,
        )
        text = done.stdout
    return text


if __name__ == "__main__":
    for name, text in sync_modules().items():
        (CLIENT / "sync" / name).write_text(text, encoding="utf-8")
