"""The file of `ade scale`: which engine, which pilots, how many.

It holds no secrets: pilots read key and database URL from `pilot.env_file`, which only its owner
may read.
"""

from __future__ import annotations

import difflib
import stat
import sys
import textwrap
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, StringConstraints

from ade.domain.scaling import DRAIN_MARGIN_SECONDS, ScaleRule, drain_after_seconds
from ade.settings_reader import Setting, SettingsError, Shape, setting, settings_of

MINUTE_SECONDS = 60
OTHERS_MAY = stat.S_IRWXG | stat.S_IRWXO
# `sbatch` options of ADE's own: another value would break what they are for.
SLURM_OPTIONS_SET = ("chdir", "export", "job-name", "output", "parsable", "signal", "time", "wrap")
PARSL_OPTIONS_SET = (
    *("cmd_timeout", "init_blocks", "launcher", "max_blocks", "min_blocks"),
    *("nodes_per_block", "walltime"),
)
# Engines of our own, which see more of their blocks than Parsl does.
BETTER_THAN_PARSL = {"SlurmProvider": "slurm", "LocalProvider": "local"}

Engine = Literal["local", "slurm", "parsl"]
ENGINES: tuple[str, ...] = get_args(Engine)
Name = Annotated[
    str,
    StringConstraints(pattern=r"^[a-z][a-z0-9]{0,19}$"),
    Shape("a lower-case letter, then up to 19 lower-case letters and digits"),
]
Program = Annotated[str, StringConstraints(pattern=r"^/[^\x00\n]*$"), Shape("an absolute path")]
PathOrNone = Annotated[
    str | None, StringConstraints(pattern=r"^/[^\x00\n]*$"), Shape("an absolute path")
]
WordOrNone = Annotated[
    str | None,
    StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._,-]{0,99}$"),
    Shape("letters, digits, `.`, `_`, `-` and `,`"),
]
Texts = Annotated[list[str], Shape('a list of texts such as ["--account=lab"]')]
Provider = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z]{1,40}Provider$"),
    Shape("the name of a class of parsl.providers"),
]
Options = Annotated[dict[str, Any], Shape("a table of the provider's own parameters")]


class Section(BaseModel):
    """Hold one table of the file."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Scaling(Section):
    """Which scaler this is."""

    name: Name = setting("main", "Name of the scaler. Names of its blocks begin with `ade-NAME-`.")
    engine: Engine = setting("local", "Where pilots are started.")
    tick_seconds: float = setting(5, "Time between two decisions.", "seconds", between=(0.5, 60))


class PilotSection(Section):
    """What a pilot is. A pilot is an `ade worker` that leaves by itself."""

    command: Program = setting(
        str(Path(sys.executable).parent / "ade"), "The program `ade` on the nodes."
    )
    env_file: PathOrNone = setting(
        None,
        "Settings of pilots, such as `ADE_DATABASE_URL`, as NAME=value lines. Only its owner may"
        " read it, on all nodes. Needed for `slurm` and `parsl`; `local` pilots have the"
        " environment of `ade scale`.",
    )
    folder: PathOrNone = setting(
        None,
        "Folder on all nodes in which pilots run and leave their output; without it, `pilots` in"
        " the data folder of `ade scale`.",
    )
    slots: int = setting(1, "Jobs that one pilot runs at once.", "jobs", between=(1, 256))
    idle_exit_seconds: float = setting(
        60,
        "A pilot without a job for so long leaves. If new ones take longer to come, the median of"
        " the last starts counts.",
        "seconds",
        between=(1, 86_400),
    )
    walltime_minutes: int = setting(
        60,
        "A pilot is gone after so long. It takes no job that could run for longer than it has"
        " left.",
        "minutes",
        between=(2, 43_200),
    )
    drain_grace_seconds: float = setting(
        20,
        "Time for running jobs to end when a pilot must leave. Less than Slurm's `KillWait`.",
        "seconds",
        between=(0, 3600),
    )


class PolicySection(Section):
    """How many pilots there are."""

    min_blocks: int = setting(
        0, "Blocks that exist even if nothing waits.", "blocks", between=(0, 1000)
    )
    max_blocks: int = setting(10, "Most blocks that exist.", "blocks", between=(1, 1000))
    hold_seconds: float = setting(
        10,
        "While pilots live, the oldest job must have waited for so long before more are ordered.",
        "seconds",
        between=(0, 3600),
    )
    backoff_seconds: float = setting(
        30,
        "After a block that ended before its pilot came, nothing is ordered for so long; twice as"
        " long after the next.",
        "seconds",
        between=(1, 3600),
    )
    backoff_max_seconds: float = setting(
        600, "Longest time in which nothing is ordered.", "seconds", between=(1, 86_400)
    )


class SlurmSection(Section):
    """What `sbatch` gets. Read for the engine `slurm`."""

    partition: WordOrNone = setting(None, "Partition of the blocks; without it, the default one.")
    options: Texts = setting([], "Further options of `sbatch`: account, memory, constraints.")


class ParslSection(Section):
    """Which provider of Parsl starts blocks. Read for the engine `parsl`."""

    provider: Provider = setting("GridEngineProvider", "Class of `parsl.providers`.")
    options: Options = setting({}, "Its parameters, as Parsl documents them.")
    timeout_seconds: float = setting(
        60, "Time for one call of the engine.", "seconds", between=(1, 600)
    )


SECTIONS: Mapping[str, type[Section]] = {
    "": Scaling,
    "pilot": PilotSection,
    "policy": PolicySection,
    "slurm": SlurmSection,
    "parsl": ParslSection,
}


@dataclass(frozen=True, slots=True)
class ScaleConfig:
    """Hold the whole file."""

    scaling: Scaling
    pilot: PilotSection
    policy: PolicySection
    slurm: SlurmSection
    parsl: ParslSection

    @property
    def walltime_seconds(self) -> float:
        """Return after how long a pilot is gone."""
        return float(self.pilot.walltime_minutes * MINUTE_SECONDS)

    @property
    def timeout_seconds_max(self) -> float:
        """Return the longest timeout of a job that a new pilot takes."""
        return drain_after_seconds(self.walltime_seconds, self.pilot.drain_grace_seconds)

    @property
    def rule(self) -> ScaleRule:
        """Return the settings of the policy."""
        return ScaleRule(
            slots_per_block=self.pilot.slots,
            min_blocks=self.policy.min_blocks,
            max_blocks=self.policy.max_blocks,
            hold_seconds=self.policy.hold_seconds,
            backoff_seconds=self.policy.backoff_seconds,
            backoff_seconds_max=self.policy.backoff_max_seconds,
        )

    def command(self, block: str, idle_seconds: float | None) -> list[str]:
        """Return the command of a pilot, which holds no secret: others may see it."""
        pilot = self.pilot
        return [
            "env",
            f"ADE_MAX_CONCURRENCY={pilot.slots}",
            f"ADE_DRAIN_GRACE_SECONDS={pilot.drain_grace_seconds:g}",
            *(pilot.command, "worker", "--block", block),
            *("--walltime", f"{self.walltime_seconds:g}"),
            *(["--exit-when-idle", f"{idle_seconds:g}"] if idle_seconds is not None else []),
            *(["--env-file", pilot.env_file] if pilot.env_file else []),
        ]


def read_scale_config(path: Path) -> ScaleConfig:
    """Read a file, or raise a SettingsError of one line that says what is allowed."""
    try:
        text = path.read_text(encoding="utf-8")
        return parse_scale_config(text)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise SettingsError(f"{path} cannot be read: {reason}") from None
    except SettingsError as refused:
        raise SettingsError(f"{path}: {refused}") from None


def parse_scale_config(text: str) -> ScaleConfig:
    """Read the text of a file, or raise a SettingsError of one line."""
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"it is not TOML: {error}") from None
    tables = {name: found.pop(name, {}) for name in SECTIONS if name} | {"": found}
    read = {name or "scaling": _section(name, table) for name, table in tables.items()}
    config = ScaleConfig(**read)  # type: ignore[arg-type]  # each section has its own class
    for problem in _problems(config):
        raise SettingsError(problem)
    return config


def _section(name: str, table: object) -> Section:
    where = f"[{name}] " if name else ""
    if not isinstance(table, dict):
        raise SettingsError(f"{name}={table!r} is not allowed: {name} is a table, [{name}]")
    declared = {one.name: one for one in settings_of(SECTIONS[name])}
    known = [*declared, *([] if name else filter(None, SECTIONS))]
    for key in table:
        if key not in declared:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
            raise SettingsError(f"{where}{key} is not known: {hint}")
    values = {key: declared[key].parse(where + key, value) for key, value in table.items()}
    return SECTIONS[name](**values)


def _problems(config: ScaleConfig) -> Iterator[str]:
    """Say what is wrong with values that are allowed one by one."""
    pilot, policy, engine = config.pilot, config.policy, config.scaling.engine
    if policy.min_blocks > policy.max_blocks:
        yield "[policy] min_blocks is greater than max_blocks"
    least = pilot.drain_grace_seconds + DRAIN_MARGIN_SECONDS
    if not config.timeout_seconds_max:
        yield (
            f"[pilot] walltime_minutes={pilot.walltime_minutes} leaves no time for jobs: more than"
            f" {least:g} s are needed, drain_grace_seconds and {DRAIN_MARGIN_SECONDS:g} s"
        )
    if engine != "local" and pilot.env_file is None:
        yield (
            f"[pilot] env_file is missing: pilots on {engine} do not have the environment of"
            " `ade scale`; name a file with ADE_DATABASE_URL that all nodes can read"
        )
    if pilot.env_file is not None:
        yield from _exposed(Path(pilot.env_file))
    for option in config.slurm.options:
        name = option.removeprefix("--").partition("=")[0]
        if not option.startswith("--") or name in SLURM_OPTIONS_SET:
            yield (
                f"[slurm] options: {option!r} is not allowed: give --name=value; ADE itself sets"
                f" {', '.join(SLURM_OPTIONS_SET)}"
            )
    better = BETTER_THAN_PARSL.get(config.parsl.provider)
    if better is not None:
        yield f'[parsl] provider={config.parsl.provider!r} is not allowed: use engine = "{better}"'
    for name in config.parsl.options:
        if name in PARSL_OPTIONS_SET:
            yield f"[parsl] options: {name} is not allowed: ADE sets it itself"


def _exposed(file: Path) -> Iterator[str]:
    try:
        mode = stat.S_IMODE(file.stat().st_mode)
    except OSError as error:
        yield f"[pilot] env_file={str(file)!r} cannot be read: {error.strerror}"
        return
    if mode & OTHERS_MAY:
        yield (
            f"[pilot] env_file={str(file)!r} can be read by others (mode {mode:o}), and it holds"
            f" the database URL: run chmod 600 {file}"
        )


def example(engine: str) -> str:
    """Write a file for an engine: what must be set, and every other key as a comment."""
    needed: dict[tuple[str, str], str] = {("", "engine"): f'"{engine}"'}
    if engine != "local":
        needed["pilot", "env_file"] = '"/shared/ade/pilot.env"'
        needed["pilot", "folder"] = '"/shared/ade/pilots"'
    if engine == "parsl":
        needed["parsl", "provider"] = '"GridEngineProvider"'
    lines = [f"# ade scale --config THIS_FILE, for the engine {engine}."]
    for section, model in SECTIONS.items():
        if section in set(ENGINES) - {engine}:
            continue
        lines += ["", f"[{section}]"] if section else []
        for one in settings_of(model):
            value = needed.get((section, one.name))
            words = f"{one.description} Allowed: {one.allowed}."
            lines += ["", *textwrap.wrap(words, 98, initial_indent="# ", subsequent_indent="# ")]
            lines.append(f"{one.name} = {value}" if value else f"# {one.name} = {_toml(one)}")
    return "\n".join(lines) + "\n"


def key_rows() -> Iterator[tuple[str, str, str, str]]:
    """Yield each key with its default, what is allowed, and what it does."""
    for section, model in SECTIONS.items():
        for one in settings_of(model):
            key = f"{section}.{one.name}" if section else one.name
            yield key, _shown_default(section, one), one.allowed, one.description


def _shown_default(section: str, one: Setting) -> str:
    if (section, one.name) == ("pilot", "command"):
        return "that of `ade scale`"
    return f"`{_toml(one)}`" if one.default else "*(unset)*"


def _toml(one: Setting) -> str:
    if one.between is not None or one.default[:1] in ("[", "{"):
        return one.default
    return f'"{one.default or "..."}"'
