"""Fields to turn and touch in a browser: one page, any ring grid.

The page holds the rings of a grid themselves, not a picture of them: its shader finds the four
points around a place as `ops.resample` does, so that what is drawn and what is read under the
pointer are the field.
"""

from spherule.report.globe.page import globe_section, write_globe
from spherule.train.scene import Frames, Globe, Image, Variable

__all__ = ["Frames", "Globe", "Image", "Variable", "globe_section", "write_globe"]
