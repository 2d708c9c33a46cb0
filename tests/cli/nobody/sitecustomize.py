"""Loaded by Python before a command: a system that does not list its users, as many containers."""

import pwd


def _unknown(uid: int) -> pwd.struct_passwd:
    raise KeyError(f"getpwuid(): uid not found: {uid}")


pwd.getpwuid = _unknown
