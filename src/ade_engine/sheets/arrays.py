"""Short names for the types of numpy arrays that the engine works with."""

from typing import Any

import numpy as np
import numpy.typing as npt

BoolArray = npt.NDArray[np.bool_]
ByteArray = npt.NDArray[np.uint8]
IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
WordArray = npt.NDArray[np.uint64]  # eight bytes of a file in each element
ObjectArray = npt.NDArray[Any]
