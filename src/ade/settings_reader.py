"""Read declared settings from variables: names and aliases, bounds, origins, one-line errors."""

from __future__ import annotations

import difflib
import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

from dotenv.parser import parse_stream
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    SecretStr,
    TypeAdapter,
    ValidationError,
)
from pydantic.fields import FieldInfo

from ade.domain.network import NetworkRule

PREFIX = "ADE_"
TEST_PREFIX = "ADE_TEST_"
# What commands and programs that call a server read (ade.client.profiles).
CLIENT_VARIABLES = frozenset({"ADE_URL", "ADE_API_KEY", "ADE_WORKSPACE", "ADE_PROFILE"})
DATABASE_SCHEMES = ("sqlite", "postgresql", "mssql")
BUCKET = "[A-Za-z0-9][A-Za-z0-9._-]{1,61}[A-Za-z0-9]"
SHOWN_CHARACTERS_MAX = 80


class SettingsError(ValueError):
    """A variable holds a value that is not allowed; the message is one line that names it."""


@dataclass(frozen=True)
class Shape:
    """Describe the text that a type takes, and mask what of it may not be shown."""

    words: str
    mask: Callable[[str], str] = str


def mask_credentials(url: str) -> str:
    """Hide user, password and password parameters of a database URL."""
    without_user = re.sub(r"^(.*?//)?.*@", r"\1***@", url, flags=re.DOTALL)
    return re.sub(r"(?i)(password|pwd)=[^&;]*", r"\1=***", without_user)


def _mask_all(_: str) -> str:
    return "********"


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


def _network_rule(value: object) -> object:
    """Read the former values too: `false` kept jobs off the network, `true` was the default."""
    word = str(value).lower()
    if word in ("false", "off", "no", "0"):
        return NetworkRule.NEVER
    return NetworkRule.BY_DEFAULT if word in ("true", "on", "yes", "1") else word


def _split_hosts(value: object) -> object:
    if not isinstance(value, str):
        return value
    names = (name.strip() for name in value.split(","))
    return tuple(dict.fromkeys(name for name in names if name))


def _split_networks(value: object) -> object:
    return () if isinstance(value, str) and value.strip().lower() == "none" else _split_hosts(value)


def _check_networks(value: tuple[str, ...] | None) -> tuple[str, ...] | None:
    for network in value or ():
        ipaddress.ip_network(network, strict=False)
    return value


def _matching(pattern: str) -> AfterValidator:
    def check(value: Any) -> Any:
        text = value.get_secret_value() if isinstance(value, SecretStr) else str(value)
        if value is not None and not re.fullmatch(pattern, text):
            raise ValueError(f"does not match {pattern}")
        return value

    return AfterValidator(check)


Folder = Annotated[Path, _matching(r"[^\0]+"), Shape("a folder")]
FolderOrNone = Annotated[Path | None, _matching(r"[^\0]+"), Shape("a folder")]
Host = Annotated[
    str, _matching(r"[A-Za-z0-9:][A-Za-z0-9:._-]{0,252}"), Shape("a host name or address")
]
Hosts = Annotated[
    tuple[Host, ...], BeforeValidator(_split_hosts), Shape("host names separated by commas")
]
ProxyNetworks = Annotated[
    tuple[str, ...],
    BeforeValidator(_split_hosts),
    AfterValidator(_check_networks),
    Shape("addresses or networks such as 10.0.0.0/8, separated by commas"),
]
Image = Annotated[
    str,
    _matching(r"[A-Za-z0-9][A-Za-z0-9._/:@-]{0,511}"),
    Shape("the name of a container image"),
]
NetworksOrNone = Annotated[
    tuple[str, ...] | None,
    BeforeValidator(_split_networks),
    AfterValidator(_check_networks),
    Shape("addresses or networks such as 10.0.0.0/8, separated by commas, or none"),
]
DatabaseUrl = Annotated[
    str,
    _matching(rf"({'|'.join(DATABASE_SCHEMES)})(\+\w+)?://.+"),
    Shape(
        "a URL that begins with " + ", ".join(f"{scheme}://" for scheme in DATABASE_SCHEMES),
        mask_credentials,
    ),
]
BlobUrl = Annotated[
    str | None,
    _matching(rf"s3://{BUCKET}(/[A-Za-z0-9_=-][A-Za-z0-9._=-]{{0,99}}){{0,8}}/?"),
    Shape("s3://bucket or s3://bucket/prefix; credentials are for AWS_*", mask_credentials),
]
PublicUrl = Annotated[
    str | None,
    _matching(r"https?://([A-Za-z0-9][A-Za-z0-9.-]{0,252}|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?/?"),
    Shape("http:// or https://, a host name, and a port if it is not the default; no path"),
]
Secret = Annotated[
    SecretStr | None,
    _matching(r"[!-~]{1,256}"),
    Shape("1 to 256 printable ASCII characters without spaces", _mask_all),
]
FirstKey = Annotated[
    SecretStr | None,
    _matching(r"[!-~]{16,256}"),
    Shape("16 to 256 printable ASCII characters without spaces", _mask_all),
]
Network = Annotated[
    NetworkRule,
    BeforeValidator(_network_rule),
    Shape("never, if_asked or by_default; false is read as never, true as by_default"),
]
Sandbox = Annotated[Literal["full", "landlock", "none"], BeforeValidator(_lower)]
LogFormat = Annotated[Literal["auto", "json", "text"], BeforeValidator(_lower)]
LogLevel = Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(_lower)]


def setting(
    default: Any,
    description: str,
    unit: str = "",
    between: tuple[float, float] | None = None,
    **facts: Any,
) -> Any:
    """Declare a setting.

    Further facts are ``variable``, ``aliases``, ``derive``, ``repr``, and ``reserved_for``, which
    names the part of ADE that does not exist yet and will read it.
    """
    derive = facts.pop("derive", None)
    given: dict[str, Any] = {"default_factory": derive} if derive else {"default": default}
    given["repr"] = facts.pop("repr", True)
    bounds: dict[str, Any] = {"ge": between[0], "le": between[1]} if between else {}
    facts |= {"unit": unit, "between": between, "shown_default": default}
    return Field(**given, **bounds, description=description, json_schema_extra=facts)


class Setting:
    """Hold one setting as its users see it."""

    def __init__(self, name: str, declared: FieldInfo) -> None:
        facts: Any = declared.json_schema_extra
        self.name = name
        self.variable: str = facts.get("variable", PREFIX + name.upper())
        self.aliases: tuple[str, ...] = facts.get("aliases", ())
        self.unit: str = facts["unit"]
        self.between: tuple[float, float] | None = facts["between"]
        self.description = declared.description or ""
        if reserved_for := facts.get("reserved_for"):
            self.description += f" Reserved for {reserved_for}: nothing reads it yet."
        self._declared = declared
        self._shape = next(
            (fact for fact in declared.metadata if isinstance(fact, Shape)),
            Shape(self._number_or_choice()),
        )
        self.default = self.show(facts["shown_default"])

    def _number_or_choice(self) -> str:
        kind = self._declared.annotation
        if get_origin(kind) is Literal:
            return "one of " + ", ".join(get_args(kind))
        if self.between is None:
            return "true or false"
        number = "a whole number" if kind is int else "a number"
        of_unit = f" of {self.unit}" if self.unit else ""
        return f"{number}{of_unit} from {self.between[0]:.15g} to {self.between[1]:.15g}"

    @property
    def variables(self) -> tuple[str, ...]:
        """Return every variable that sets it, the documented one first."""
        return (self.variable, *self.aliases)

    @property
    def allowed(self) -> str:
        """Return what the variable may hold."""
        return self._shape.words

    def parse(self, variable: str, raw: Any) -> Any:
        """Return the value of a variable's text, or raise a SettingsError of one line.

        What is no text comes from a file that has types, and must be of the right one.
        """
        kind: Any = Annotated[self._declared.annotation, self._shape, *self._declared.metadata]
        is_text = isinstance(raw, str)
        try:
            return TypeAdapter(kind).validate_python(raw, strict=not is_text)
        except ValidationError:
            shown = self._shape.mask(str(raw))
            if len(shown) > SHOWN_CHARACTERS_MAX:
                shown = shown[:SHOWN_CHARACTERS_MAX] + "…"
            value = repr(shown) if is_text else shown
            raise SettingsError(f"{variable}={value} is not allowed: give {self.allowed}") from None

    def show(self, value: Any) -> str:
        """Write a value as its variable would hold it, without what may not be seen."""
        match value:
            case None:
                return ""
            case bool():
                return str(value).lower()
            case float():
                return f"{value:.15g}"
            case tuple():
                return ",".join(value)
            case _:
                return self._shape.mask(str(value))


def settings_of(model: type[BaseModel]) -> tuple[Setting, ...]:
    """List a model's settings in the order of their declaration."""
    return tuple(Setting(name, declared) for name, declared in model.model_fields.items())


@dataclass(frozen=True)
class VariableSource:
    """Hold the variables that were found in one place; empty ones count as not set."""

    label: str
    variables: Mapping[str, str]

    def name_origin(self, variable: str) -> str:
        """Return where a value came from."""
        return f"{self.label} {variable}"


def environment_source(environ: Mapping[str, str]) -> VariableSource:
    """Take the variables of the process."""
    return VariableSource("environment", _without_empty(environ))


def env_file_source(path: Path) -> VariableSource:
    """Take the variables of a ``.env`` file, none if there is no such file."""
    try:
        with path.open(encoding="utf-8") as file:
            bindings = list(parse_stream(file))
    except FileNotFoundError:
        return VariableSource(".env", {})
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise SettingsError(f"{path} cannot be read: {reason}") from None
    for binding in bindings:
        if binding.error:
            raise SettingsError(
                f"{path} line {binding.original.line} cannot be read: write NAME=value"
            )
    found = {binding.key: binding.value or "" for binding in bindings if binding.key}
    return VariableSource(".env", _without_empty(found))


def _without_empty(variables: Mapping[str, str]) -> dict[str, str]:
    stripped = {name: value.strip() for name, value in variables.items()}
    return {name: value for name, value in stripped.items() if value}


def read_setting(setting: Setting, sources: tuple[VariableSource, ...]) -> tuple[Any, str] | None:
    """Return a setting's value and origin, from the first source that sets it."""
    for source in sources:
        found = [
            (variable, setting.parse(variable, source.variables[variable]))
            for variable in setting.variables
            if variable in source.variables
        ]
        if not found:
            continue
        variable, value = found[0]
        for other, other_value in found[1:]:
            if other_value != value:
                raise SettingsError(
                    f"{variable}={setting.show(value)} and {other}={setting.show(other_value)} "
                    f"set the same thing to different values: keep one of them"
                )
        return value, source.name_origin(variable)
    return None


def unknown_variables(
    settings: tuple[Setting, ...], sources: tuple[VariableSource, ...]
) -> Iterator[str]:
    """Yield a warning for each variable that looks like a setting and is not one."""
    known = {variable for setting in settings for variable in setting.variables}
    known |= CLIENT_VARIABLES
    for source in sources:
        for variable in sorted(source.variables.keys() - known):
            if not variable.startswith(PREFIX) or variable.startswith(TEST_PREFIX):
                continue
            near = difflib.get_close_matches(variable, sorted(known), n=1, cutoff=0.7)
            hint = f"; did you mean {near[0]}?" if near else ""
            yield f"{source.name_origin(variable)} is not a setting of ADE{hint}"
