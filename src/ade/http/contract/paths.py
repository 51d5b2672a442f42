"""Which paths belong to the worker contract; all others belong to the main app."""

_AGENT = "/api/agent/"
_EXACT = frozenset({"/run-simulation", "/jobs", "/queue", "/hosts"})
_FOLDERS = frozenset(
    {"status", "job-info", "logs", "file-logs", "progress", "result", "stop", "job", "ops"}
)


def is_of_contract(path: str) -> bool:
    """Tell whether a path, without a trailing slash, is one of the worker contract."""
    if path in _EXACT or path.startswith(_AGENT):
        return True
    first, slash, _ = path[1:].partition("/")
    return bool(slash) and first in _FOLDERS
