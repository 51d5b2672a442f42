"""What a job type answers for."""

from typing import ClassVar

from pydantic import BaseModel

from ade.stages.rules import LOCAL


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
