"""The version of the engine."""

from importlib.metadata import PackageNotFoundError, version

try:
    ENGINE_VERSION = version("ade")
except PackageNotFoundError:  # run from a source tree that is not installed
    ENGINE_VERSION = "0"
