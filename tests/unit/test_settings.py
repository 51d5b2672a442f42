"""The settings: defaults, names, bounds, origins and refusals."""

import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError

from ade.settings import Settings, SettingsError, all_settings, load_settings
from ade.settings_reader import Setting, mask_credentials

NO_FILE = Path("/nonexistent/.env")
SETTINGS = {setting.name: setting for setting in all_settings()}
BOUNDED = sorted(name for name, setting in SETTINGS.items() if setting.between)
TOGETHER = {"lease_seconds", "lease_margin_seconds", "renew_seconds"}

SEED_DEFAULTS = {
    "ADE_MAX_CONCURRENCY": 2,
    "ADE_QUEUE_SIZE": 10,
    "ADE_JOB_TIMEOUT_SECONDS": 300,
    "ADE_WORKER_CPU_SECONDS": 60,
    "ADE_WORKER_MEM_MB": 512,
    "ADE_WORKER_FSIZE_MB": 100,
    "ADE_RUNTIME_NETWORK_ACCESS": "never",
    "ADE_WHEELHOUSE": None,
    "ADE_SAFE_MODE": False,
    "ADE_STORAGE_DATA_DIR": Path("data"),
    "ADE_ACTIVATION_ENVS_DIR": Path("data/venvs"),
    "ADE_DATABASE_URL": "sqlite:///data/ade.db",
    "ADE_VM_SHARED_DATA": Path("/opt/opeva_shared_data"),
    "ADE_SANDBOX": "landlock",
    "ADE_HOST": "127.0.0.1",
    "ADE_PORT": 8000,
}

ALIASES = [
    ("ADE_QUEUE_MAX_CONCURRENCY", "max_concurrency"),
    ("ADE_QUEUE_MAX_SIZE", "queue_size"),
    ("ADE_RUN_TIMEOUT_SECONDS", "job_timeout_seconds"),
    ("ADE_BUILD_TIMEOUT", "build_timeout_seconds"),
    ("ADE_BUILD_TIMEOUT_SECONDS", "build_timeout_seconds"),
    ("QUEUE_CLAIM_TTL", "queue_claim_ttl"),
    ("ADE_QUEUE_CLAIM_TTL", "queue_claim_ttl"),
    ("HOST_HEARTBEAT_TTL", "host_heartbeat_ttl"),
    ("ADE_HOST_HEARTBEAT_TTL", "host_heartbeat_ttl"),
    ("WORKER_STALE_GRACE_SECONDS", "worker_stale_grace_seconds"),
    ("ADE_WORKER_STALE_GRACE_SECONDS", "worker_stale_grace_seconds"),
    ("JOB_STATUS_TTL", "job_status_ttl"),
    ("ADE_JOB_STATUS_TTL", "job_status_ttl"),
]

BAD_VALUES = [
    ("ADE_MAX_CONCURRENCY", "0"),
    ("ADE_MAX_CONCURRENCY", "two"),
    ("ADE_MAX_CONCURRENCY", "1.5"),
    ("ADE_QUEUE_MAX_SIZE", "-1"),
    ("ADE_JOB_TIMEOUT_SECONDS", "nan"),
    ("ADE_JOB_TIMEOUT_SECONDS", "inf"),
    ("ADE_PORT", "65536"),
    ("ADE_PORT", "8000\nADE_HOST=0.0.0.0"),
    ("ADE_SAFE_MODE", "perhaps"),
    ("ADE_SANDBOX", "bubblewrap"),
    ("ADE_LOG_LEVEL", "loud"),
    ("ADE_HOST", "not a host"),
    ("ADE_DATABASE_URL", "mysql://db/ade"),
    ("ADE_DATABASE_URL", "data/ade.db"),
    ("ADE_BLOB_URL", "https://bucket.s3.amazonaws.com"),
    ("ADE_BLOB_URL", "s3://"),
    ("ADE_BLOB_URL", "s3://ab"),
    ("ADE_BLOB_URL", "s3://bucket//x"),
    ("ADE_BLOB_URL", "s3://bucket/../x"),
    ("ADE_BLOB_URL", "s3://bucket/a b"),
    ("ADE_BLOB_URL", "s3://bucket/x?region=eu"),
    ("AVAILABLE_HOSTS", "one,t wo"),
    ("ADE_STORAGE_DATA_DIR", "da\0ta"),
]


def load(**environ: str) -> Settings:
    return load_settings(environ, NO_FILE)


def refusal(environ: dict[str, str], dotenv: Path = NO_FILE) -> str:
    with pytest.raises(SettingsError) as refused:
        load_settings(environ, dotenv)
    return str(refused.value)


@pytest.mark.parametrize(("variable", "default"), SEED_DEFAULTS.items())
def test_default_is_the_seeds(variable: str, default: object) -> None:
    setting = next(setting for setting in SETTINGS.values() if setting.variable == variable)
    settings = load()
    assert getattr(settings, setting.name) == default
    assert settings.origin(setting.name) == "default"


def test_no_two_settings_share_a_variable() -> None:
    variables = [variable for setting in SETTINGS.values() for variable in setting.variables]
    assert len(variables) == len(set(variables))


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
def test_every_setting_says_what_it_does_and_what_it_may_hold(setting: Setting) -> None:
    assert setting.description.endswith(".")
    assert setting.allowed


@pytest.mark.parametrize(("variable", "name"), ALIASES)
def test_alias_sets_its_setting(variable: str, name: str) -> None:
    settings = load(**{variable: "7"})
    assert getattr(settings, name) == 7
    assert settings.origin(name) == f"environment {variable}"


@pytest.mark.parametrize("prefix", ["", "ADE_"])
def test_agent_settings_need_no_prefix(prefix: str) -> None:
    settings = load(**{f"{prefix}AVAILABLE_HOSTS": "a, b,,a", f"{prefix}VM_SHARED_DATA": "/srv"})
    assert settings.available_hosts == ("a", "b")
    assert settings.vm_shared_data == Path("/srv")


@pytest.mark.parametrize(("variable", "value"), BAD_VALUES)
def test_bad_value_is_refused_in_one_line(variable: str, value: str) -> None:
    line = refusal({variable: value})
    assert line.startswith(f"{variable}={value!r} is not allowed: give ")
    assert len(line.splitlines()) == 1


def test_long_bad_value_is_cut() -> None:
    assert len(refusal({"ADE_PORT": "9" * 10_000})) < 300


@pytest.mark.parametrize("name", BOUNDED)
@given(data=st.data())
def test_documented_bounds_are_enforced(name: str, data: st.DataObject) -> None:
    setting = SETTINGS[name]
    assert setting.between is not None
    low, high = map(int, setting.between)
    outside = data.draw(st.integers(max_value=low - 1) | st.integers(min_value=high + 1))
    assert refusal({setting.variable: str(outside)}).startswith(f"{setting.variable}=")


@pytest.mark.parametrize("name", sorted(set(BOUNDED) - TOGETHER))
@pytest.mark.parametrize("end", [0, 1])
def test_documented_bounds_are_themselves_allowed(name: str, end: int) -> None:
    setting = SETTINGS[name]
    assert setting.between is not None
    bound = setting.between[end]
    assert getattr(load(**{setting.variable: f"{bound:.15g}"}), name) == bound


@example(lease=15, margin=3, renew=12)
@example(lease=15, margin=3, renew=11)
@example(lease=5, margin=5, renew=1)
@given(lease=st.integers(1, 3600), margin=st.integers(1, 3600), renew=st.integers(1, 3600))
def test_lease_margin_and_renewal_agree(lease: int, margin: int, renew: int) -> None:
    environ = {
        "ADE_LEASE_SECONDS": str(lease),
        "ADE_LEASE_MARGIN_SECONDS": str(margin),
        "ADE_RENEW_SECONDS": str(renew),
    }
    if margin >= lease:
        assert refusal(environ).startswith(f"ADE_LEASE_MARGIN_SECONDS={margin} is not allowed")
    elif renew >= lease - margin:
        assert refusal(environ).startswith(f"ADE_RENEW_SECONDS={renew} is not allowed")
    else:
        assert load(**environ).renew_seconds == renew


def test_names_that_disagree_are_refused() -> None:
    line = refusal({"ADE_MAX_CONCURRENCY": "2", "ADE_QUEUE_MAX_CONCURRENCY": "3"})
    assert "ADE_MAX_CONCURRENCY=2" in line
    assert "ADE_QUEUE_MAX_CONCURRENCY=3" in line
    assert len(line.splitlines()) == 1


def test_names_that_agree_are_accepted() -> None:
    settings = load(ADE_MAX_CONCURRENCY="3", ADE_QUEUE_MAX_CONCURRENCY=" 03 ")
    assert settings.max_concurrency == 3
    assert settings.origin("max_concurrency") == "environment ADE_MAX_CONCURRENCY"


def test_empty_variable_is_not_set() -> None:
    assert load(ADE_WHEELHOUSE="", ADE_QUEUE_SIZE=" ") == load()


def test_derived_paths_follow_the_data_folder() -> None:
    settings = load(ADE_STORAGE_DATA_DIR="/srv/ade")
    assert settings.database_url == "sqlite:////srv/ade/ade.db"
    assert settings.activation_envs_dir == Path("/srv/ade/venvs")
    assert settings.jobs_dir == Path("/srv/ade/jobs")
    assert settings.origin("database_url") == "default"


def test_environment_wins_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text(
        "export ADE_PORT=1\nADE_QUEUE_MAX_SIZE='4' # room\nADE_QUEUE_MAX_CONCURRENCY=9\n"
    )
    settings = load_settings({"ADE_PORT": "2", "ADE_MAX_CONCURRENCY": "3"}, file)
    assert (settings.port, settings.origin("port")) == (2, "environment ADE_PORT")
    assert (settings.queue_size, settings.origin("queue_size")) == (4, ".env ADE_QUEUE_MAX_SIZE")
    assert settings.max_concurrency == 3


def test_file_of_the_working_directory_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".env").write_text("ADE_PORT=4321\n")
    monkeypatch.chdir(tmp_path)
    assert load_settings({}).port == 4321


@pytest.mark.parametrize("content", [b"ADE_PORT=1\nthis is 'no assignment\n", b"ADE_PORT=\xff\n"])
def test_unreadable_file_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / ".env"
    file.write_bytes(content)
    assert refusal({}, file).startswith(f"{file} ")


def test_folder_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    assert refusal({}, tmp_path) == f"{tmp_path} cannot be read: Is a directory"


def test_unknown_variable_is_warned_of_with_a_guess(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("ADE_XYZZY=1\n")
    environ = {"ADE_MAX_CONCURENCY": "3", "ADE_TEST_POSTGRES_URL": "x", "PATH": "/bin"}
    assert load_settings(environ, file).warnings == (
        "environment ADE_MAX_CONCURENCY is not a setting of ADE; did you mean ADE_MAX_CONCURRENCY?",
        ".env ADE_XYZZY is not a setting of ADE",
    )


def test_key_is_shown_nowhere() -> None:
    settings = load(ADE_BOOTSTRAP_API_KEY="hunter2-hunter2-hunter2")
    setting = SETTINGS["bootstrap_api_key"]
    assert settings.bootstrap_api_key is not None
    assert settings.bootstrap_api_key.get_secret_value() == "hunter2-hunter2-hunter2"
    assert "hunter2" not in repr(settings)
    assert "hunter2" not in setting.show(settings.bootstrap_api_key)
    assert "hunter 2" not in refusal({"ADE_BOOTSTRAP_API_KEY": "hunter 2"})


@pytest.mark.parametrize("key", ["x", "fifteen-letters"])
def test_a_first_key_that_can_be_guessed_is_refused(key: str) -> None:
    assert "give 16 to 256 printable" in refusal({"ADE_BOOTSTRAP_API_KEY": key})


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ade:p@ss/w@db/ade", "postgresql://***@db/ade"),
        (
            "postgresql://db/ade?user=a&password=s3cret&x=1",
            "postgresql://db/ade?user=a&password=***&x=1",
        ),
        (
            "mssql://db/ade?odbc_connect=UID=a;PWD=s3cret;",
            "mssql://db/ade?odbc_connect=UID=a;PWD=***;",
        ),
        ("sqlite:///data/ade.db", "sqlite:///data/ade.db"),
    ],
)
def test_database_password_is_not_shown(url: str, shown: str) -> None:
    assert mask_credentials(url) == shown
    settings = load(ADE_DATABASE_URL=url)
    assert settings.database_url == url
    assert SETTINGS["database_url"].show(settings.database_url) == shown
    assert "s3cret" not in repr(settings)


def test_settings_do_not_change() -> None:
    with pytest.raises(ValidationError):
        load().port = 1


def test_settings_given_as_arguments_know_their_origin() -> None:
    settings = Settings(queue_size=0)
    assert settings.origin("queue_size") == "argument"
    assert settings.origin("port") == "default"
    with pytest.raises(KeyError):
        settings.origin("warnings")


@pytest.mark.parametrize(
    "url", ["s3://bucket", "s3://bucket/", "s3://my.bucket-1/a/b_c/v=1.0/", "s3://bucket/x"]
)
def test_object_storage_is_a_bucket_and_a_prefix(url: str) -> None:
    settings = load(ADE_BLOB_URL=url)
    assert settings.blob_url == url
    assert SETTINGS["blob_url"].show(settings.blob_url) == url
    assert load().blob_url is None


def test_credentials_in_the_url_of_object_storage_are_refused_and_not_shown() -> None:
    message = refusal({"ADE_BLOB_URL": "s3://AKIAKEY:hush@bucket/prefix"})
    assert message.startswith(
        "ADE_BLOB_URL='s3://***@bucket/prefix' is not allowed: give s3://bucket"
    )
    assert "hush" not in message
    assert "AKIAKEY" not in message
    assert "AWS_*" in message


def test_every_setting_is_read_unless_it_is_reserved() -> None:
    source = Path(__file__).parents[2] / "src" / "ade"
    texts = [path.read_text() for path in source.rglob("*.py") if path.name != "settings.py"]
    code = "\n".join([*texts, (source / "settings.py").read_text().split("_origins", 1)[1]])
    unread = {name for name in SETTINGS if not re.search(rf"\.{name}\b", code)}
    assert unread == {n for n, setting in SETTINGS.items() if "Reserved for" in setting.description}


@pytest.mark.parametrize(
    ("text", "rule"),
    [("never", "never"), ("IF_ASKED", "if_asked"), ("false", "never"), ("true", "by_default")],
)
def test_the_rule_for_the_network_takes_its_former_values_too(text: str, rule: str) -> None:
    assert load_settings({"ADE_RUNTIME_NETWORK_ACCESS": text}).runtime_network_access == rule


def test_a_rule_for_the_network_that_does_not_exist_is_refused() -> None:
    with pytest.raises(SettingsError, match="give never, if_asked or by_default"):
        load_settings({"ADE_RUNTIME_NETWORK_ACCESS": "sometimes"})


def test_a_first_key_that_is_short_is_refused() -> None:
    with pytest.raises(SettingsError, match="16 to 256") as refused:
        load_settings({"ADE_BOOTSTRAP_API_KEY": "x" * 15})
    assert "xxx" not in str(refused.value)
    assert load_settings({"ADE_BOOTSTRAP_API_KEY": "x" * 16}).bootstrap_api_key is not None
