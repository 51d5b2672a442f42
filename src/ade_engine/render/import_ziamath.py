"""Import ziamath in an environment where a plain import fails. Import this before ziamath.

ziamath looks up the home folder, and the sandbox has none. It also uses deprecated functions of
Python, which is an error in a process that turns warnings into errors.
"""

import os
import warnings

without_home = "HOME" not in os.environ
if without_home:
    os.environ["HOME"] = os.sep
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import ziamath  # noqa: F401
if without_home:
    del os.environ["HOME"]
