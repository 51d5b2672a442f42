"""No package brings a module under a name of the engine, in whatever form Python would import."""

from pathlib import Path

import pytest

from ade.environments.failure import BuildFailed
from ade.environments.provided import RESERVED, refuse_shadows, reserved_names


@pytest.mark.parametrize(
    "entry",
    [
        "numpy.py",
        "numpy.pyc",
        "numpy.so",
        "numpy.abi3.so",
        "numpy.cpython-311-x86_64-linux-gnu.so",
        "numpy.cpython-399-aarch64-linux-gnu.so",
        "NumPy.py",
        "ADE_ENGINE.abi3.so",
        "_polars_runtime_32.py",
        "numpy/",  # also without an __init__.py: a namespace package
        "Polars/",
    ],
)
def test_what_shadows_the_engine_is_refused(tmp_path: Path, entry: str) -> None:
    place = tmp_path / entry.rstrip("/")
    place.mkdir() if entry.endswith("/") else place.touch()
    with pytest.raises(BuildFailed):
        refuse_shadows(tmp_path)


@pytest.mark.parametrize(
    "entry", ["numpy.libs/", "numpy-2.0.dist-info/", "numpy.txt", "numpydoc.py", "x.pth", "_numpy/"]
)
def test_what_cannot_be_imported_as_the_engine_may_stay(tmp_path: Path, entry: str) -> None:
    place = tmp_path / entry.rstrip("/")
    place.mkdir() if entry.endswith("/") else place.touch()
    refuse_shadows(tmp_path)


def test_the_names_are_those_of_what_is_installed() -> None:
    assert set(RESERVED) <= reserved_names()
    assert all(name.isidentifier() for name in reserved_names())
