"""Say that a file needs the slow way."""


class NotPlain(Exception):
    """The file is right, perhaps, but not written in the way that the fast reader knows."""
