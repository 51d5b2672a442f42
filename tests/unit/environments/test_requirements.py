"""Requirements: names and versions are let through, and nothing that reaches further."""

import pytest

from ade.environments.failure import BuildFailed
from ade.environments.requirements import BYTES_MAX, REQUIREMENTS_MAX, read_requirements

SUM = "sha256:" + "0" * 64


def test_names_versions_extras_and_markers_are_let_through() -> None:
    text = """
    rapidfuzz
    python-dateutil >= 2.9, < 3   # a comment
    httpx[http2]==0.28.1 ; python_version >= "3.11"
    """
    assert read_requirements(text.encode()) == [
        "rapidfuzz",
        "python-dateutil<3,>=2.9",
        'httpx[http2]==0.28.1; python_version >= "3.11"',
    ]


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n   # at all", "\ufeff"])
def test_nothing_and_comments_need_nothing(text: str) -> None:
    assert read_requirements(text.encode()) == []


def test_hashes_and_continued_lines_are_kept() -> None:
    text = f"greeting==1.0 \\\n    --hash={SUM} \\\n    --hash={SUM}\npolite"
    assert read_requirements(text.encode()) == [
        f"greeting==1.0 --hash={SUM} --hash={SUM}",
        "polite",
    ]


@pytest.mark.parametrize(
    "line",
    [
        "-r /etc/passwd",
        "--requirement other.txt",
        "-c constraints.txt",
        "-e .",
        "--index-url https://example.com/simple",
        "--find-links /",
        "--trusted-host example.com",
        "/etc/passwd",
        "./package",
        "file:///etc/passwd",
        "https://example.com/package.whl",
        "git+https://example.com/package",
        "package @ https://example.com/package.whl",
        "package @ file:///etc/passwd",
        "package --config-settings=x=y",
        f"package --hash={SUM[:-1]}",
        "package; os.system('x')",
        "pack age",
        "${HOME}",
        "package\0",
    ],
)
def test_whatever_reaches_further_is_refused_by_its_line(line: str) -> None:
    with pytest.raises(BuildFailed, match=r"requirements\.txt, line 3: ") as refused:
        read_requirements(f"greeting\n\n{line}\n".encode())
    assert refused.value.error.code == "REQUIREMENTS_REFUSED"


def test_a_refusal_shows_little_of_the_line() -> None:
    with pytest.raises(BuildFailed) as refused:
        read_requirements(b"-" + b"x" * 10_000)
    assert len(str(refused.value)) < 250


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"#" * (BYTES_MAX + 1), "may have at most 256 KiB"),
        (b"\xff\xfe", "is not written in UTF-8"),
        (b"a\n" * (REQUIREMENTS_MAX + 1), f"may name at most {REQUIREMENTS_MAX} packages"),
    ],
)
def test_there_is_an_end_to_it(content: bytes, words: str) -> None:
    with pytest.raises(BuildFailed, match=words):
        read_requirements(content)
