"""Tell an author that something was called wrongly, in words that never hold a value."""


class Misuse(Exception):
    """Say what a function of the author's API wants.

    Its message is repeated in error messages, unlike that of any other exception, and only when it
    was raised by the engine itself.
    """
