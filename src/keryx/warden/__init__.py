"""Child processes. `client` is the host's side; `main` is the process that all run under."""

from keryx.warden.client import Warden
from keryx.warden.keepers import Confinement
from keryx.warden.process import Exit, Process

__all__ = ["Confinement", "Exit", "Process", "Warden"]
