"""What the audit of the mock calls: thirteen regions from one script, and some calls beside it."""

from __future__ import annotations

from keryx.testing.modelserver import Call, Reply

REGIONS = [
    *("eu-west-1", "eu-west-2", "eu-central-1", "eu-north-1", "us-east-1", "us-east-2"),
    *("us-west-1", "us-west-2", "ap-northeast-1", "ap-southeast-1", "af-south-1"),
    *("ap-south-1", "sa-east-1"),
]
CANCELLED = "sa-east-1"
LINES = "".join(f"  '{region}',\n" for region in REGIONS)
REGIONS_FILE = f"[audit]\nowner = 'nobody'\nregions = [\n{LINES}]\n"
# A region whose gate is closed answers late.
CLUSTERS = 'sleep 0.5; [ -p "at-$1" ] && read go < "at-$1"; echo "$1    4 clusters"\n'
SCRIPT = f"""\
from keryx_tools import parallel, terminal

regions = {REGIONS!r}
commands = [f"sh clusters {{region}}" for region in regions]
for answer in parallel(terminal, commands, limit=13):
    print(answer["output"].strip() if isinstance(answer, dict) else answer)
"""
PATCH = """\
*** Begin Patch
*** Update File: regions.toml
@@
 [audit]
-owner = 'nobody'
+owner = 'infra'
+since = '30 days'
 regions = [
*** End Patch
"""


def first_look(waiting: Call) -> Reply:
    """The step that the person cuts short."""
    return Reply(
        text="I'll look at how the regions are configured first.",
        calls=(Call("read_file", {"path": "regions.toml"}), waiting),
    )


def audit_calls() -> tuple[Call, ...]:
    """A script may do anything, so whatever is asked for after it would wait for it."""
    return (
        Call("search_files", {"pattern": "owner", "path": "."}),
        Call("read_file", {"path": "regions.toml"}),
        Call("patch", {"patch": PATCH}),
        Call("read_file", {"path": "owners/cluster-7.toml"}),
        Call("execute_code", {"code": SCRIPT, "timeout": 300}),
    )
