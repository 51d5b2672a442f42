"""Serve the kernel over HTTP: routes, keys and roles, problems, OpenAPI."""

from ade.http.app import create_app
from ade.http.health import Component, Probe

__all__ = ["Component", "Probe", "create_app"]
