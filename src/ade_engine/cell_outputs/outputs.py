"""Keep what a cell shows, in the order in which it appears."""

from typing import Any

from ade_engine.cell_outputs import figures
from ade_engine.cell_outputs.artifacts import ArtifactWriter, reason
from ade_engine.cell_outputs.figures import Figures, is_figure
from ade_engine.cell_outputs.rich import is_rich, keep_rich
from ade_engine.cell_outputs.tables import as_frame, is_frame_or_series, keep_table, table_json
from ade_engine.cell_outputs.values import encode, text_of
from ade_engine.channel import Channel

SHOWN_MAX = 100
PLAIN = (str, bytes, int, float, complex, bool, list, tuple, dict, set, frozenset, type(None))


class Outputs:
    """Hold the outputs of one cell; `display` is the function that cells find under this name."""

    def __init__(self, formats: list[str], channel: Channel) -> None:
        self._writer = ArtifactWriter(formats, channel)
        self._figures = Figures(self._writer)
        self._shown = 0
        self._plain: set[type] = set(PLAIN)
        figures.on_show = self._figures.keep_open

    def display(self, *values: Any) -> None:
        """Show values as a notebook does: text on stdout, everything else as artifacts."""
        for value in values:
            if self._keep(value, f"output-{self._shown + 1}") is None:
                print(value if isinstance(value, str) else repr(value))  # noqa: T201

    def result(self, value: Any) -> Any:
        """Keep what is still open and the cell's value; return the value as JSON."""
        self._figures.keep_open()
        return encode(value, lambda item: self._keep(item, "result"))

    def _keep(self, value: Any, stem: str) -> Any:
        """Keep a value as artifacts if it is more than text; return what stands in the result."""
        kind = type(value)
        if kind in self._plain or self._shown >= SHOWN_MAX:
            return None
        if not _may_be_shown(value):
            self._plain.add(kind)  # a long list has many values of one type
            return None
        try:
            kept = self._kept(value, stem)
        except Exception as error:
            self._writer.warn(f"The value could not be shown: {reason(error)}")
            return None
        self._shown += kept is not None
        return kept

    def _kept(self, value: Any, stem: str) -> Any:
        if (frame := as_frame(value)) is not None:
            return table_json(frame, keep_table(frame, stem, self._writer))
        if is_frame_or_series(value):  # a short series without labels is a list
            return None
        if is_figure(value):
            names = [] if _is_open(value) else self._figures.keep(value)
            return {"repr": text_of(value), **({"artifacts": names} if names else {})}
        names = keep_rich(value, stem, self._writer)
        return {"repr": text_of(value), "artifacts": names} if names else None


def _may_be_shown(value: Any) -> bool:
    return is_frame_or_series(value) or is_figure(value) or is_rich(value)


def _is_open(figure: Any) -> bool:
    """Tell whether pyplot knows a figure, so that it is kept with the open ones."""
    return getattr(figure, "number", None) is not None
