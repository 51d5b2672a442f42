"""What a cell leaves: its value as JSON, and figures, tables, rich outputs and files as artifacts.

A failure of ADE's own rendering is a warning in the result, never a failure of the cell.
"""

from ade_engine.cell_outputs.outputs import Outputs

__all__ = ["Outputs"]
