"""The matplotlib backend of cells: figures are drawn by Agg, and `plt.show()` keeps them."""

from typing import Any

from matplotlib.backend_bases import FigureManagerBase
from matplotlib.backends.backend_agg import FigureCanvasAgg

from ade_engine.cell_outputs import figures


class FigureManager(FigureManagerBase):
    """Keep all open figures when they are shown, and close them."""

    @classmethod
    def pyplot_show(cls, *, block: bool | None = None) -> None:
        """Do what `plt.show()` does."""
        if figures.on_show is not None:
            figures.on_show()

    def show(self) -> None:
        """Do what `figure.show()` does: the figure is kept with the others."""


class FigureCanvas(FigureCanvasAgg):
    """Draw with Agg."""

    manager_class: Any = FigureManager
