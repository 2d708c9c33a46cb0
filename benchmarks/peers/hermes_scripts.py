"""hermes-agent: one script through its `execute_code`, on this machine, as many calls as it likes.

`HERMES_HOME` must be an empty folder; the working directory is what the script is about.
"""

# The package is not installed here; a Python of its own runs this.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

Path(os.environ["HERMES_HOME"], "config.yaml").write_text(
    "code_execution: {max_tool_calls: 1000000, timeout: 300}\n"
)

from tools.code_execution_tool import execute_code  # noqa: E402 (reads the home when it is loaded)

ended = json.loads(execute_code(Path(sys.argv[1]).read_text(), task_id="benchmark"))
sys.stderr.write(ended.get("error") or "")
print(ended["output"].strip().splitlines()[-1])
