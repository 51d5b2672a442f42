"""Note when the status of an agent's job changed other than by a report of its agent."""

from ade.domain.agent_pool import is_agent_pool
from ade.store.port import Transaction
from ade.store.rows import JobRow


def note_status_change(tx: Transaction, job: JobRow) -> None:
    """Note that the status of a job changes now, if agents run it; its facts stay."""
    if is_agent_pool(job.pool) and (known := tx.agent_jobs.find(job.id)) is not None:
        tx.agent_jobs.record(job.id, known.facts)
