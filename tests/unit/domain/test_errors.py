"""The exception tree: each class one problem, with one code, as its module draws it."""

import re

import pytest

from ade.domain import errors
from ade.domain.errors import AdeError, QueueFull


def tree(root: type[AdeError]) -> list[type[AdeError]]:
    own = [c for c in root.__subclasses__() if c.__module__ == errors.__name__]
    return [root, *[below for child in own for below in tree(child)]]


CLASSES = tree(AdeError)


@pytest.mark.parametrize("kind", CLASSES)
def test_each_has_a_code_a_status_and_a_title(kind: type[AdeError]) -> None:
    assert re.fullmatch(r"[a-z_]+", kind.code)
    assert 400 <= kind.status <= 599
    assert kind.title()
    assert not kind.title().endswith(".")


def test_no_two_share_a_code() -> None:
    codes = [kind.code for kind in CLASSES]
    assert len(set(codes)) == len(codes)


def test_the_drawing_is_the_tree() -> None:
    drawn = set(re.findall(r"[├└]── (\w+)", errors.__doc__ or ""))
    assert drawn == {kind.__name__ for kind in CLASSES[1:]}
    for kind in CLASSES[1:]:
        assert re.search(rf"{kind.__name__}\b.* {kind.code}$", errors.__doc__ or "", re.MULTILINE)


def test_what_it_carries() -> None:
    error = errors.InvalidRequest("No.", errors=[{"field": "a"}])
    assert (error.detail, error.errors, str(error)) == ("No.", ({"field": "a"},), "No.")
    assert QueueFull("Full.", retry_after_seconds=7).retry_after_seconds == 7
