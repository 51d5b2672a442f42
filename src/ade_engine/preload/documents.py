"""Load what exports and thumbnails need.

No page is typeset here, because that starts threads.
"""

from ade_engine.entry import thumbnail
from ade_engine.export.fonts import embedded_fonts
from ade_engine.export.markdown import parse
from ade_engine.preload import drawing

assert thumbnail  # and with it all that exports need
assert drawing
embedded_fonts()
parse("# a\n\n*b* $c$ `d`\n\n| e |\n|---|\n| f |\n", lambda code, message: None)
