"""What the children of a session may do: `policy` says it, the warden's keepers enforce it."""

from keryx.sandbox.local import Bounds, LocalPlace
from keryx.sandbox.policy import Limits, Policy
from keryx.warden import Confinement

__all__ = ["Bounds", "Confinement", "Limits", "LocalPlace", "Policy"]
