"""The file of `ade scale`: every key has a limit, and a mistake is one line that says so."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest

from ade.agents.scale_config import (
    ENGINES,
    SECTIONS,
    example,
    key_rows,
    parse_scale_config,
    read_scale_config,
)
from ade.settings_reader import SettingsError

DOCS = Path(__file__).parents[3] / "docs"


@pytest.fixture
def env_file(tmp_path: Path) -> Path:
    file = tmp_path / "pilot.env"
    file.write_text("ADE_DATABASE_URL=postgresql://ade:secret@db/ade\n")
    file.chmod(0o600)
    return file


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("engine = 'slum'", "engine='slum' is not allowed: give one of local, slurm, parsl"),
        ("enginee = 'slurm'", "enginee is not known: did you mean engine?"),
        ("zzz = 1", "zzz is not known: there are name, engine"),
        ("name = 'a-b'", "name='a-b' is not allowed: give a lower-case letter"),
        ("pilot = 3", "pilot is a table, [pilot]"),
        ("[pilot]\nslots = 0", "[pilot] slots=0 is not allowed: give a whole number of jobs"),
        ("[pilot]\nslots = true", "[pilot] slots=True is not allowed"),
        ("[pilot]\nfolder = 'here'", "[pilot] folder='here' is not allowed: give an absolute path"),
        ("[parsl]\nprovider = 'SlurmProvider'", 'is not allowed: use engine = "slurm"'),
        ("[pilot]\nwalltime_minutes = 2\ndrain_grace_seconds = 60", "leaves no time for jobs"),
        ("[policy]\nmin_blocks = 11", "[policy] min_blocks is greater than max_blocks"),
        ("engine = 'slurm'", "[pilot] env_file is missing"),
        ("[pilot]\nenv_file = '/nowhere/env'", "cannot be read: No such file"),
        ("[slurm]\noptions = ['--export=ALL']", "ADE itself sets chdir, export"),
        ("[slurm]\noptions = '-A lab'", 'give a list of texts such as ["--account=lab"]'),
        ("[parsl.options]\nlauncher = 1", "launcher is not allowed: ADE sets it itself"),
        ("name = ", "it is not TOML"),
    ],
)
def test_a_mistake_is_one_line_that_says_what_is_allowed(text: str, says: str) -> None:
    with pytest.raises(SettingsError) as refused:
        parse_scale_config(text)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_others_can_read_is_refused_with_the_remedy(env_file: Path) -> None:
    env_file.chmod(0o640)
    with pytest.raises(SettingsError, match=f"run chmod 600 {env_file}"):
        parse_scale_config(f"[pilot]\nenv_file = '{env_file}'")


def test_the_message_names_the_file(tmp_path: Path) -> None:
    file = tmp_path / "scale.toml"
    with pytest.raises(SettingsError, match=r"scale.toml cannot be read: No such file"):
        read_scale_config(file)
    file.write_text("zzz = 1")
    with pytest.raises(SettingsError, match=r"scale.toml: zzz is not known"):
        read_scale_config(file)


def test_nothing_secret_is_on_the_command_line_of_a_pilot(env_file: Path) -> None:
    config = parse_scale_config(f"engine = 'slurm'\n[pilot]\nslots = 4\nenv_file = '{env_file}'")
    words = config.command("ade-main-1", 60)
    assert words[:2] == ["env", "ADE_MAX_CONCURRENCY=4"]
    assert words[words.index("--block") + 1] == "ade-main-1"
    assert words[words.index("--exit-when-idle") + 1] == "60"
    assert words[words.index("--env-file") + 1] == str(env_file)
    assert "postgresql" not in shlex.join(words)
    assert "--exit-when-idle" not in config.command("ade-main-1", None)


def test_a_pilot_takes_no_job_that_cannot_end_before_it_drains() -> None:
    config = parse_scale_config("[pilot]\nwalltime_minutes = 60\ndrain_grace_seconds = 20")
    assert config.timeout_seconds_max == 3600 - 20 - 60


@pytest.mark.parametrize("engine", ENGINES)
def test_the_example_of_an_engine_is_a_file_that_can_be_used(engine: str, env_file: Path) -> None:
    text = example(engine).replace("/shared/ade/pilot.env", str(env_file))
    assert parse_scale_config(text).scaling.engine == engine


@pytest.mark.parametrize("engine", ENGINES)
def test_each_commented_default_is_the_default(engine: str, env_file: Path) -> None:
    text = example(engine).replace("/shared/ade/pilot.env", str(env_file))
    default = parse_scale_config(text)
    uncommented = re.sub(r"^# (\w+ = (?!\"\.\.\.\").*)$", r"\1", text, flags=re.MULTILINE)
    assert len(tomllib.loads(uncommented)["pilot"]) > 3
    assert parse_scale_config(uncommented) == default


def test_every_key_is_described() -> None:
    rows = list(key_rows())
    assert len(rows) == sum(len(model.model_fields) for model in SECTIONS.values())
    assert all(allowed and description for _, _, allowed, description in rows)


@pytest.mark.parametrize("page", ["slurm", "other-engines", "kubernetes"])
def test_the_files_of_the_pages_are_allowed(page: str, env_file: Path) -> None:
    text = (DOCS / "how-to" / f"{page}.md").read_text()
    examples = re.findall(r"(?ms)^```toml\n(.*?)^```", text)
    assert examples
    for one in examples:
        here = re.sub(r'(?m)^env_file = ".*"$', f'env_file = "{env_file}"', one)
        assert parse_scale_config(here).scaling.engine in ("slurm", "parsl")
