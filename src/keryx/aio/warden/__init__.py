"""Child processes. `client` is the host's side; `main` is the process that all run under."""

from keryx.aio.warden.client import Warden
from keryx.aio.warden.keepers import Confinement
from keryx.aio.warden.process import Exit, Process

__all__ = ["Confinement", "Exit", "Process", "Warden"]
