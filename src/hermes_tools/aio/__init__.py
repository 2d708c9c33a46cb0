"""An alias of `keryx_tools.aio`, for older scripts."""

from keryx_tools.aio import *  # noqa: F403 (an alias exports everything)
from keryx_tools.aio import __dir__, __getattr__  # noqa: F401 (Python looks them up in the module)
