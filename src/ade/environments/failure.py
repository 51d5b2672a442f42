"""Why a build came to nothing, in words for whoever wrote the configuration."""

MESSAGE_CHARS_MAX = 2_000


class BuildFailed(Exception):
    """Say what is wrong and what to do; no path of this machine, no traceback."""

    def __init__(self, message: str) -> None:
        super().__init__(message[:MESSAGE_CHARS_MAX])
        self.message = message[:MESSAGE_CHARS_MAX]
