"""What a job type answers for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

from pydantic import BaseModel

from ade.stages.rules import LOCAL
from ade.store.rows import Claim


@dataclass(frozen=True, slots=True)
class Prepared:
    """Say what a job's entry is called with, and what it finds around it.

    `files` are put into the job's folder under these names, `outputs` are taken out of it and kept
    in the job's own folder under others. `environment` names installed packages; None is ADE's own.
    """

    inputs: dict[str, Any]
    files: Mapping[str, Path] = field(default_factory=dict)
    outputs: Mapping[str, str] = field(default_factory=dict)
    environment: str | None = None


class Workroom(Protocol):
    """Find what a job works on."""

    async def document(self, workspace_id: str, document_id: str) -> tuple[Path, str]:
        """Return where a document's bytes are, and its name."""
        ...

    async def package(self, workspace_id: str, version_id: str) -> dict[str, Path]:
        """Return where the bytes of each file of a configuration's version are."""
        ...

    async def environment(self, workspace_id: str, build_id: str) -> str | None:
        """Return which installed packages a build made; None is ADE's own environment."""
        ...


class Kind:
    """Describe one job type; a subclass with other values is a new one.

    `inputs` is the model that a submission's `inputs` must fit; `entry` the module of the runtime
    whose `main(inputs)` runs in the child; `env_version` what a result depends on besides its
    inputs. `trusted` is for ADE's own code only: it needs no walls.
    """

    name: ClassVar[str]
    inputs: ClassVar[type[BaseModel]]
    entry: ClassVar[str]
    env_version: ClassVar[str]
    pool: ClassVar[str] = LOCAL
    retries: ClassVar[int] = 2
    trusted: ClassVar[bool] = False
    # Whether it may be asked for by name; a run is made by way of its configuration instead.
    direct: ClassVar[bool] = True

    async def prepare(
        self, claim: Claim, inputs: dict[str, Any], workroom: Workroom | None
    ) -> Prepared:
        """Gather what an attempt needs; what is missing is an error of the job."""
        return Prepared(inputs)
