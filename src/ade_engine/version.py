"""Say which engine this is."""

from importlib.metadata import PackageNotFoundError, version

try:
    ENGINE_VERSION = version("ade")
except PackageNotFoundError:  # run from a bare source tree
    ENGINE_VERSION = "0"
