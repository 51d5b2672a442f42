"""What was drawn."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Picture:
    """Hold a drawing as SVG that is safe to embed, and its size in CSS pixels.

    `baseline` is how far the line that letters stand on lies above the lower edge: in a line of
    text, lower the picture by it (CSS: `vertical-align: -<baseline>px`). `drawn_by` is the program
    that laid it out, with its version.
    """

    svg: str
    width: float
    height: float
    baseline: float = 0.0
    drawn_by: str = ""
