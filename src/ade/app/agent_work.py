"""Which work agents may ask for, and which agents ask: what answers an idle poll from memory."""

from ade.kernel import Kernel


class AgentWork:
    """Hand jobs to the agents that ask."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
