"""Import ziamath where it cannot on its own.

It asks for a home folder, and behind walls there is none; and it calls what Python has deprecated,
which is an error to whoever makes warnings errors.
"""

import os
import warnings

homeless = "HOME" not in os.environ
if homeless:
    os.environ["HOME"] = os.sep
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import ziamath  # noqa: F401
if homeless:
    del os.environ["HOME"]
