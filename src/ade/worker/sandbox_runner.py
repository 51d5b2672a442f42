"""Run attempts in the sandbox."""

from collections.abc import Callable
from dataclasses import dataclass

from ade.sandbox.child_messages import OnProgress
from ade.sandbox.pool import Pool
from ade.sandbox.runtime_environment import Environment, own_environment
from ade.sandbox.spec import RunSpec, WorkerBounds
from ade.sandbox.supervisor import SandboxedRun


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxRunner:
    """Start each attempt in a child that a zygote forks."""

    pool: Pool
    bounds: WorkerBounds
    environment_of: Callable[[str], Environment] | None = None
    refusal: str | None = None

    @property
    def isolation(self) -> tuple[str, ...]:
        """Name the sandbox layers around a job without network access."""
        return self.pool.isolation(network=False)

    def start(self, spec: RunSpec, on_progress: OnProgress) -> SandboxedRun:
        """Prepare the attempt; its child is taken from the pool when its outcome is awaited."""
        return SandboxedRun(self.pool, spec, self._environment(spec), on_progress, self.bounds)

    def _environment(self, spec: RunSpec) -> Environment:
        if spec.environment is not None and self.environment_of is not None:
            return self.environment_of(spec.environment)
        return own_environment(spec.preload)
