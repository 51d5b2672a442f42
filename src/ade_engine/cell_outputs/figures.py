"""Save matplotlib figures: those that a cell shows, and those that are open at its end."""

import sys
from collections.abc import Callable
from typing import Any

from ade_engine.cell_outputs.artifacts import ArtifactWriter
from ade_engine.cell_outputs.values import is_instance

FIGURE_FORMATS = ("png", "svg", "pdf")
BACKEND = "module://ade_engine.cell_outputs.matplotlib_backend"
# Dates and versions are left out, so that the same figure gives the same file.
METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
# What `plt.show()` does in this process; the backend calls it.
on_show: Callable[[], None] | None = None


class Figures:
    """Number the figures of a cell as they appear."""

    def __init__(self, writer: ArtifactWriter) -> None:
        self._writer = writer
        self._count = 0

    def keep_open(self) -> None:
        """Write the figures that are open, and close them."""
        pyplot = sys.modules.get("matplotlib.pyplot")
        if pyplot is None:
            return
        for number in pyplot.get_fignums():
            figure = pyplot.figure(number)
            self.keep(figure)
            pyplot.close(figure)

    def keep(self, figure: Any) -> list[str]:
        """Write one figure in the wanted formats; return the names of the files."""
        formats = self._writer.formats
        wanted = [one for one in formats if one in FIGURE_FORMATS] if formats else ["png"]
        if not wanted:
            return []
        sys.modules["matplotlib"].rcParams["svg.hashsalt"] = "ade"
        width, height = (round(float(side * figure.dpi)) for side in figure.get_size_inches())
        self._count += 1
        written = [
            self._writer.write(
                f"figure-{self._count}",
                format_,
                lambda path, f=format_: figure.savefig(path, format=f, metadata=METADATA[f]),  # type: ignore[misc]
                kind="plot",
                metadata={"width": width, "height": height},
            )
            for format_ in wanted
        ]
        return [name for name in written if name is not None]


def is_figure(value: Any) -> bool:
    """Tell whether a value is a figure of matplotlib."""
    return is_instance(value, "matplotlib.figure", "Figure")
