"""Read and write the YAML configurations of experiments, which are anybody's text.

libyaml builds nested values by recursion in C, so the depth of a text is checked before it is
built. Every scalar stays text: nothing of it is evaluated.
"""

from dataclasses import dataclass
from typing import Any

import yaml

from ade.domain.errors import InvalidRequest

DEPTH_MAX = 100
NAME_CHARS_MAX = 200
_OPENS = (yaml.SequenceStartEvent, yaml.MappingStartEvent)
_CLOSES = (yaml.SequenceEndEvent, yaml.MappingEndEvent)


@dataclass(frozen=True, slots=True)
class ExperimentNames:
    """Hold what a configuration calls its experiment and its run, where it says so."""

    experiment_name: str | None = None
    run_name: str | None = None


def write_config(config: dict[str, Any]) -> str:
    """Write a configuration as YAML."""
    text: str = yaml.dump(
        config,
        Dumper=yaml.CSafeDumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=False,
    )
    return text


def read_names(text: str) -> ExperimentNames:
    """Read the names in a configuration, or raise InvalidRequest if it is no YAML mapping."""
    config = _load(text)
    if not isinstance(config, dict):
        raise InvalidRequest("config: a configuration is a YAML mapping.")
    return names_of(config)


def names_of(config: dict[str, Any]) -> ExperimentNames:
    """Find the names at the top, below `metadata`, or as `name` and `run_name` of `experiment`."""
    metadata, experiment = config.get("metadata"), config.get("experiment")
    places = [config, metadata if isinstance(metadata, dict) else {}]
    if isinstance(experiment, dict):
        places.append({"experiment_name": experiment.get("name"), **experiment})
    return ExperimentNames(_first(places, "experiment_name"), _first(places, "run_name"))


def _first(places: list[dict[str, Any]], name: str) -> str | None:
    for place in places:
        found = place.get(name)
        if isinstance(found, str | int) and str(found).strip():
            return str(found).strip()[:NAME_CHARS_MAX]
    return None


def _load(text: str) -> Any:
    try:
        _check_depth(text)
        return yaml.load(text, Loader=yaml.CBaseLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"line {mark.line + 1}: " if mark is not None else ""
        raise InvalidRequest(f"config: it is not valid YAML ({place}{error.problem}).") from None
    except (yaml.YAMLError, ValueError):
        raise InvalidRequest("config: it is not valid YAML.") from None


def _check_depth(text: str) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=yaml.CBaseLoader):
        if isinstance(event, _OPENS):
            depth += 1
            if depth > DEPTH_MAX:
                raise InvalidRequest(f"config: it is nested deeper than {DEPTH_MAX} levels.")
        elif isinstance(event, _CLOSES):
            depth -= 1
