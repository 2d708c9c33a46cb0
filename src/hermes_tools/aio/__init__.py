"""The name that older scripts import `keryx_tools.aio` by. There is nothing of its own here."""

from keryx_tools.aio import *  # noqa: F403 (all of it, whatever that is here)
from keryx_tools.aio import __dir__, __getattr__  # noqa: F401 (what Python asks a module for)
