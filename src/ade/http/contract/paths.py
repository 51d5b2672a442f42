"""Which paths belong to the worker contract; all others belong to the main app."""

_EXACT = frozenset(
    {
        "/api/agent/next-job",
        "/api/agent/job-status",
        "/api/agent/heartbeat",
        "/run-simulation",
        "/jobs",
        "/queue",
        "/hosts",
    }
)
_FOLDERS = frozenset(
    {"status", "job-info", "logs", "file-logs", "progress", "result", "stop", "job", "ops"}
)
_AGENT_JOBS = "/api/agent/jobs/"


def is_of_contract(path: str) -> bool:
    """Tell whether a path, without a trailing slash, is one of the worker contract."""
    if path in _EXACT:
        return True
    first, slash, _ = path[1:].partition("/")
    return bool(slash) and (first in _FOLDERS or path.startswith(_AGENT_JOBS))
