"""No path that a script gives to a nested tool leads it out, at whatever instant it is read."""

from __future__ import annotations

import json
import os

import pytest

from tests.app.scripting import SECRET, Den, Waiting, execute, hosting

pytestmark = pytest.mark.promise("tools.3")

# How often a race is run that nobody may win.
SWAPS = 200


# -- tools that take paths


NAMED = {
    "read_file": [{"path": "{path}"}],
    "list_files": [{"path": "{path}"}],
    "search_files": [
        {"pattern": "contents", "path": "{path}", "hidden": True},
        {"pattern": "id_rsa", "path": "{path}", "kind": "names", "hidden": True},
    ],
    "write_file": [{"path": "{path}", "content": "x", "overwrite": True}],
    "patch": [
        {"patch": "*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch\n"},
        {"patch": "*** Begin Patch\n*** Delete File: {path}\n*** End Patch\n"},
        {"patch": f"*** Begin Patch\n*** Update File: {{path}}\n-{SECRET}\n+x\n*** End Patch\n"},
        {"patch": "*** Begin Patch\n*** Update File: a\n*** Move to: {path}\n*** End Patch\n"},
    ],
}
"""Every argument of a nested tool that names a path."""

NAMING = """
import json, os, sys
import keryx_tools as tools
outside, host, runner, private = sys.argv[1:5]
name, forms = sys.argv[5], json.loads(sys.argv[6])
os.symlink(outside, "folder")
os.symlink(f"{outside}/secret", "file")
os.symlink("..", "up")
os.symlink("/proc/self/root", "root")

paths = [outside, f"{outside}/secret", f"{outside}/new", f"{outside}/.ssh/id_rsa", private]
paths += [f"{outside}/keryx", f"{outside}/keryx/host.json", f"{outside}/keryx/keryx.db"]
paths += ["../outside", "../outside/secret", "sub/../../outside/new"]
paths += ["folder", "folder/secret", "folder/new", "file", "up/outside/secret", "up/outside/new"]
for process in ("self", "thread-self", host, runner, os.getpid(), 1):
    paths += [f"/proc/{process}/root{outside}/secret", f"/proc/{process}/root{outside}/new"]
    paths += [f"/proc/{process}/{file}" for file in ("environ", "root", "fd", "mem")]
paths += ["/proc/self/cwd", f"/proc/{host}/cwd", "root"]
paths += [f"root{outside}/secret", f"root{outside}/new"]
paths += [f"//proc/self/root{outside}/secret", "/etc/shadow", "/dev/shm/new", "/keryx-was-here"]

def attempt(path, form):
    arguments = {key: text.replace("{path}", path) if isinstance(text, str) else text
                 for key, text in form.items()}
    try:
        return str(getattr(tools, name)(**arguments))
    except tools.ToolFailedError:
        return None

answers = {f"{path} in {form}": attempt(path, form) for path in paths for form in forms}
tools.finish({"tried": len(answers), "answered": {k: v for k, v in answers.items() if v}})
"""


@pytest.mark.parametrize("name", NAMED)
async def test_no_path_leads_a_nested_tool_out(den: Den, name: str) -> None:
    (den.workspace / "a").write_text("inside")
    before = den.snapshot()
    async with hosting(den) as app:
        other = Waiting(await app.open(approvals="never"), den.workspace / "gate")
        await other.secret()
        facts = (str(den.outside), str(os.getpid()), str(await other.pid()), str(other.private))
        handle = await app.open(approvals="never")
        result = (await execute(handle, NAMING, *facts, name, json.dumps(NAMED[name])))["result"]
        await other.let_go()
    assert result["answered"] == {}
    assert result["tried"] >= 60
    assert den.snapshot() == before


MOVING = """
import os, shlex, sys
import keryx_tools as tools
outside, host, runner = sys.argv[1:]
os.symlink(outside, "folder")
os.symlink("..", "up")
places = [outside, f"{outside}/.ssh", f"{outside}/keryx", "../outside", "folder", "up/outside"]
for process in ("self", host, runner, os.getpid(), 1):
    places += [f"/proc/{process}/cwd", f"/proc/{process}/root{outside}", f"/proc/{process}/root"]
command = "touch new; ls -a; cat secret id_rsa host.json"
said = []
for place in places:
    for attempt in ((command, place), (f"cd {place}; {command}", None)):
        try:
            said.append(tools.terminal(*attempt)["output"])
        except tools.ToolFailedError:
            pass
tools.finish("".join(said))
"""


async def test_no_folder_leads_a_nested_command_out(den: Den) -> None:
    before = den.snapshot()
    async with hosting(den) as app:
        other = Waiting(await app.open(approvals="never"), den.workspace / "gate")
        await other.secret()
        facts = (str(den.outside), str(os.getpid()), str(await other.pid()))
        said = (await execute(await app.open(approvals="never"), MOVING, *facts))["result"]
        await other.let_go()
    assert SECRET not in said
    assert "keryx.db" not in said
    assert said.count("No such file") >= 30
    assert den.snapshot() == before


SWAPPING = """
import os, sys, threading
import keryx_tools as tools
outside, name, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
os.mkdir("real")
for file in ("secret", "named"):
    with open(f"real/{file}", "w") as made:
        made.write("harmless")
os.symlink(outside, "led")
over = threading.Event()

def swap():
    # One instant it is a folder of the workspace, the next a link to the outside.
    os.rename("real", "way")
    while not over.is_set():
        os.rename("way", "real")
        os.rename("led", "way")
        os.rename("way", "led")
        os.rename("real", "way")

def one(number):
    way = f"way/new{number}"
    patch = f"*** Begin Patch\\n*** Add File: {way}\\n+x\\n*** End Patch\\n"
    return {
        "read_file": lambda: tools.read_file("way/secret"),
        "list_files": lambda: tools.list_files("way", hidden=True),
        "search_files": lambda: tools.search_files("contents", "way", hidden=True),
        "write_file": lambda: tools.write_file(way, "x", overwrite=True),
        "patch": lambda: tools.patch(patch),
    }[name]()

thread = threading.Thread(target=swap)
thread.start()
said, failed = [], 0
for number in range(rounds):
    try:
        said.append(str(one(number)))
    except tools.ToolFailedError:
        failed += 1
over.set()
thread.join()
tools.finish({"said": "".join(said), "inside": len(said), "refused": failed})
"""


@pytest.mark.parametrize("name", ["read_file", "list_files", "search_files", "write_file", "patch"])
async def test_a_link_swapped_in_at_any_instant_leads_nowhere(den: Den, name: str) -> None:
    before = den.snapshot()
    async with hosting(den) as app:
        handle = await app.open(approvals="never")
        result = (await execute(handle, SWAPPING, str(den.outside), name, str(SWAPS)))["result"]
    assert SECRET not in result["said"]
    assert "id_rsa" not in result["said"]
    assert result["inside"] + result["refused"] == SWAPS
    assert den.snapshot() == before
