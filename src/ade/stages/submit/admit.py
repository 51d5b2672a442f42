"""Reserve capacity before anything is written: a refused job leaves no row."""

from ade.domain.build import KIND as BUILD
from ade.domain.errors import QueueFull
from ade.domain.job import LOCAL_POOL
from ade.stages.kernel_settings import KernelSettings
from ade.stages.submit.model import Answer, Submission
from ade.store.port import Transaction

GATE = "admission"


def admit(
    settings: KernelSettings,
    tx: Transaction,
    submissions: list[Submission],
    new: list[int],
    answers: dict[int, Answer],
) -> list[int]:
    """Admit as many as there is room for, in the order in which they came.

    Jobs for the local workers are counted; builds are not: there is at most one for each version of
    a configuration. Jobs for agents take no place of these. They are counted by what they ask of an
    agent, so that those that wait for one host leave room for those of others.
    """
    if not any(_is_bounded(settings, submissions[index]) for index in new):
        return new
    tx.pass_gate(GATE)
    capacity = _Capacity(settings, tx)
    admitted = []
    for index in new:
        submission = submissions[index]
        refusal = None
        if submission.pool != LOCAL_POOL:
            refusal = capacity.take_of_agents(_agent_pool(submission))
        elif _is_counted(submission):
            refusal = capacity.take(submission.workspace_id)
        if refusal is None:
            admitted.append(index)
        else:
            answers[index] = refusal
    return admitted


def _is_bounded(settings: KernelSettings, submission: Submission) -> bool:
    if submission.pool != LOCAL_POOL:
        return settings.agent_queue_size > 0
    is_bounded = settings.queue_size or settings.workspace_queue_size
    return bool(is_bounded) and _is_counted(submission)


def _agent_pool(submission: Submission) -> str:
    asked = submission.agent_pool
    return submission.pool if asked is None else asked.name


def _is_counted(submission: Submission) -> bool:
    return submission.pool == LOCAL_POOL and submission.kind != BUILD


class _Capacity:
    """Count the free places in the queue, and in what each workspace may use of it."""

    def __init__(self, settings: KernelSettings, tx: Transaction) -> None:
        self._settings = settings
        self._tx = tx
        self._free: int | None = None
        self._free_in: dict[str, int] = {}
        self._free_of: dict[str, int] = {}

    def take(self, workspace_id: str) -> QueueFull | None:
        """Take one place, or return why there is none."""
        settings = self._settings
        if settings.workspace_queue_size and self._left_in(workspace_id) <= 0:
            reason = (
                f"The workspace's quota is used up: {settings.workspace_queue_size} of its jobs"
                " are waiting (ADE_WORKSPACE_QUEUE_SIZE)."
            )
            return self._full(reason, workspace_id)
        if settings.queue_size:
            if self._left() <= 0:
                return self._full(f"The queue is full: {settings.queue_size} jobs are waiting.")
            self._free = self._left() - 1
        if settings.workspace_queue_size:
            self._free_in[workspace_id] -= 1
        return None

    def take_of_agents(self, pool: str) -> QueueFull | None:
        """Take one place among the jobs that ask the same of an agent, or return why not."""
        size = self._settings.agent_queue_size
        if not size:
            return None
        if pool not in self._free_of:
            self._free_of[pool] = size - self._tx.count_waiting(pool, size)
        if self._free_of[pool] <= 0:
            return self._full(f"{size} jobs wait for the same agents (ADE_AGENT_QUEUE_SIZE).")
        self._free_of[pool] -= 1
        return None

    def _left(self) -> int:
        if self._free is None:
            size = self._settings.queue_size
            self._free = size - self._tx.count_waiting(LOCAL_POOL, size)
        return self._free

    def _left_in(self, workspace_id: str) -> int:
        if workspace_id not in self._free_in:
            size = self._settings.workspace_queue_size
            waiting = self._tx.count_waiting_in(workspace_id, LOCAL_POOL, size)
            self._free_in[workspace_id] = size - waiting
        return self._free_in[workspace_id]

    def _full(self, reason: str, workspace_id: str | None = None) -> QueueFull:
        wait = self._settings.drain_meter.retry_after_seconds(self._tx.now_us, workspace_id)
        return QueueFull(f"{reason} Try again in about {wait} s.", retry_after_seconds=wait)
