"""File names that users chose."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ade.domain.errors import InvalidRequest
from ade.domain.file_names import (
    NAME_CHARS_MAX,
    PATH_CHARS_MAX,
    PATH_DEPTH_MAX,
    config_path,
    document_name,
    refuse_clashes,
)

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=300)


@given(ANY_TEXT)
def test_a_documents_name_is_always_a_plain_name(given_name: str) -> None:
    name = document_name(given_name)
    assert 0 < len(name) <= NAME_CHARS_MAX
    assert name.isprintable()
    assert not set(name) & set("/\\")
    assert name not in (".", "..")
    assert document_name(name) == name


@given(ANY_TEXT)
def test_a_path_is_plain_or_refused(given_path: str) -> None:
    try:
        path = config_path(given_path)
    except InvalidRequest:
        return
    parts = path.split("/")
    assert 0 < len(path) <= PATH_CHARS_MAX
    assert len(parts) <= PATH_DEPTH_MAX
    assert not {"", ".", ".."} & set(parts)
    assert path.isprintable()
    assert config_path(path) == path


def test_paths_that_people_use_are_allowed() -> None:
    for path in ("config.toml", "columns/member_id.py", "a b/ü-1 (2).txt", "..a/b..", ".hidden"):
        assert config_path(path) == path


def test_a_file_is_no_folder() -> None:
    refuse_clashes(["a/b", "a/c", "ab"])
    for clash in (["a", "a/b"], ["a/b/c/d", "a/b"]):
        with pytest.raises(InvalidRequest):
            refuse_clashes(clash)
