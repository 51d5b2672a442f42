"""Run attempts behind walls: what the worker knows, in the words of `ade.sandbox`."""

from collections.abc import Callable
from dataclasses import dataclass

from ade.sandbox.environment import Environment, own_environment
from ade.sandbox.order import Bounds, Order
from ade.sandbox.pool import Pool
from ade.sandbox.supervisor import Running
from ade.worker.runner import Assignment, Tell


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxRunner:
    """Start each attempt as a child of a zygote."""

    pool: Pool
    bounds: Bounds
    environment_of: Callable[[str], Environment] | None = None
    refusal: str | None = None

    @property
    def isolation(self) -> tuple[str, ...]:
        """Name the walls around a job without network."""
        return self.pool.isolation(network=False)

    def start(self, assignment: Assignment, tell: Tell) -> Running:
        """Order the attempt; its child is taken when its outcome is awaited."""
        order = Order(
            entry=assignment.entry,
            inputs=assignment.inputs,
            limits=assignment.limits,
            environment=self._environment(assignment),
            network=assignment.network,
            files=assignment.files,
            collect_to=assignment.folder / "artifacts",
            outputs=assignment.outputs,
            outputs_to=assignment.folder,
        )
        return Running(self.pool, order, tell, self.bounds)

    def _environment(self, assignment: Assignment) -> Environment:
        if assignment.environment is not None and self.environment_of is not None:
            return self.environment_of(assignment.environment)
        return own_environment(assignment.warm)
