"""A cell gets the packages that it requires, in an environment that equal requirements share."""

from pathlib import Path

import pytest
from pydantic import ValidationError
from tests.system.cells import error, run
from tests.system.server import starting
from tests.wheels import make_wheel

from ade.kinds.object_execute import ExecuteInputs

SOURCE = "import greeting\ngreeting.VERSION"


def test_a_cell_has_its_own_requirements(tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    make_wheel(wheels, "greeting", "1.5")
    make_wheel(wheels, "greeting", "2.0")
    with starting(tmp_path, ADE_WHEELHOUSE=wheels, ADE_LOG_LEVEL="warning") as start:
        server = start.server()
        found = run(server, SOURCE, requirements=["greeting"])
        assert found["outputs"]["result_json"] == "2.0", found["error"]
        assert found["logs"] == [{"level": "info", "message": "Installed: greeting==2.0."}]
        older = run(server, SOURCE, requirements=["greeting<2"])
        assert older["outputs"]["result_json"] == "1.5"
        assert len({found["env_version"], older["env_version"]}) == 2
        assert found["job"]["execution_key"] != older["job"]["execution_key"]
        assert error(server, SOURCE)["code"] == "MODULE_NOT_FOUND"
        missing = error(server, SOURCE, requirements=["no-such-package"])
        assert (missing["category"], missing["code"]) == (
            "DEPENDENCY_ERROR",
            "PACKAGES_NOT_INSTALLED",
        )
        assert "requirements.txt" not in missing["message"]


@pytest.mark.parametrize("text", ["./here", "a @ file:///etc/passwd", "-r other.txt", "a b"])
def test_a_requirement_is_a_name_with_versions(text: str) -> None:
    with pytest.raises(ValidationError):
        ExecuteInputs.model_validate({"source": "1", "requirements": [text]})


def test_the_order_of_requirements_means_nothing() -> None:
    one, other = (
        ExecuteInputs.model_validate({"source": "1", "requirements": names}).model_dump()
        for names in (["b>=1", "a"], ["a", "b>=1", "a"])
    )
    assert one == other
