"""The version of ADE, of its server and of its client."""

__version__ = "0.1.0"
