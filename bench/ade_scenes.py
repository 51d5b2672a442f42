"""Rows that a scene needs by the million, written past the kernel."""

from __future__ import annotations

from sqlalchemy import create_engine, text

_JOB = """
INSERT INTO jobs (workspace_id, id, pool, status, eligible, rank, holds_lane, fence, retries_left,
  event_seq, started_at, finished_at, timeout_ms, history, result)
SELECT {workspace}, {id}, 'local', 'succeeded', 0, n, 0, 1, 2, 3, n, n, 300000, '', '{{}}' FROM rows
"""
_REQUEST = """
INSERT INTO requests (workspace_id, id, kind, priority, submitted_by, submitted_at, limits, payload)
SELECT {workspace}, {id}, 'echo', 'normal', 'bench', n, '{{}}', '{{"n": 1}}' FROM rows
"""
# Identifiers of long ago, in the shape of the others.
_SQLITE_ID = "printf('00000000-%04x-7%03x-8000-%012x', n / 4096, n % 4096, n)"
_POSTGRES_ID = (
    "('00000000-' || lpad(to_hex(n / 4096), 4, '0') || '-7' || lpad(to_hex(n % 4096), 3, '0')"
    " || '-8000-' || lpad(to_hex(n), 12, '0'))::uuid"
)


def add_finished(url: str, workspace_id: str, count: int) -> None:
    """Add jobs that finished long ago."""
    if url.startswith("sqlite"):
        rows = (
            f"WITH RECURSIVE rows(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM rows WHERE n<{count})"
        )
        workspace, identifier, head = f"'{workspace_id}'", _SQLITE_ID, rows
    else:
        workspace, identifier = f"'{workspace_id}'::uuid", _POSTGRES_ID
        head = ""
    engine = create_engine(url)
    with engine.begin() as connection:
        for statement in (_REQUEST, _JOB):
            sql = statement.format(workspace=workspace, id=identifier)
            if head:
                sql = f"{head} {sql}"
            else:
                sql = sql.replace("FROM rows", f"FROM generate_series(1, {count}) AS rows(n)")
            connection.execute(text(sql.replace(":", "\\:")))
    engine.dispose()
