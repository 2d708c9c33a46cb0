"""An alias of `keryx_tools`, for older scripts."""

from keryx_tools import *  # noqa: F403 (an alias exports everything)
from keryx_tools import __dir__, __getattr__  # noqa: F401 (Python looks them up in the module)
