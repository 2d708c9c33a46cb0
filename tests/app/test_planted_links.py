"""A command may put links, pipes and second names wherever it can write: the host follows none.

Each place is one that the host itself reads or writes for a session: attachments, AGENTS.md, and
the diff of what was changed.
"""

from __future__ import annotations

import os

import pytest

from keryx.app import SessionHandle
from keryx.models.scripted import ScriptedModel, ScriptedReply
from tests.app.scripting import SECRET, Den, execute, hosting

pytestmark = pytest.mark.promise("walls.1")

NOTE = b"what a person attached"

# Everything that a script can do to the folder of attachments, or to where it used to be.
PLANTING = """
import os, shutil, sys
import keryx_tools as tools
outside = sys.argv[1]
uploads = os.environ["KERYX_UPLOADS"]
places = [uploads, os.path.dirname(uploads), f"{uploads}/note.txt", f"{uploads}/id_rsa"]
places += [f"{os.environ['TMPDIR']}/uploads", f"{os.environ['TMPDIR']}/.uploads"]

def attempt(work, *arguments):
    try:
        work(*arguments)
    except OSError:
        pass

for place in places:
    attempt(os.unlink, place)
    attempt(os.rename, place, f"{place}.before")
    attempt(shutil.rmtree, place)
    for target in (f"{outside}/.ssh", "/", f"{outside}/.ssh/id_rsa"):
        attempt(os.symlink, target, place)
        attempt(os.symlink, target, f"{place}/led")

answers = []
for name in ("id_rsa", "led", "led/id_rsa", f"led{outside}/.ssh/id_rsa", f"{outside[1:]}/secret",
             "note.txt/id_rsa", "../.ssh/id_rsa", f"../..{outside}/secret"):
    for tool in (tools.read_file, tools.list_files):
        try:
            answers.append(str(tool(path=f"$KERYX_UPLOADS/{name}")))
        except tools.ToolFailedError:
            pass
    try:
        with open(f"{uploads}/{name}") as file:
            answers.append(file.read())
    except OSError:
        pass
tools.finish("".join(answers))
"""
READING = """
import keryx_tools as tools
def read(name):
    try:
        return str(tools.read_file(path=f"$KERYX_UPLOADS/{name}"))
    except tools.ToolFailedError as error:
        return str(error)
names = [line for line in tools.terminal("ls $KERYX_UPLOADS")["output"].splitlines()]
tools.finish({"names": names, "texts": [read(name) for name in names]})
"""


async def attach(handle: SessionHandle, upload: object) -> None:
    result = await (await handle.send("see", attachments=[upload])).result()  # pyright: ignore[reportArgumentType] (as `upload` gave it)
    assert result.outcome == "completed"


async def test_what_is_attached_is_read_and_laid_where_no_command_can_write(den: Den) -> None:
    before = den.snapshot()
    model = ScriptedModel(lambda _: ScriptedReply(text="Seen."))
    async with hosting(den, model=model) as app:
        handle = await app.open(approvals="never")
        await attach(handle, await app.upload(NOTE, "note.txt", "text/plain"))
        assert SECRET not in (await execute(handle, PLANTING, str(den.outside)))["result"]
        await attach(handle, await app.upload(b"a second one", "later.txt", "text/plain"))
        after = (await execute(handle, READING))["result"]
    assert len(after["names"]) == 2
    assert NOTE.decode() in "".join(after["texts"])
    assert "a second one" in "".join(after["texts"])
    assert den.snapshot() == before


def plant(den: Den, kind: str) -> None:
    agents = den.workspace / "AGENTS.md"
    match kind:
        case "a pipe":
            os.mkfifo(agents)
        case "a folder":
            agents.mkdir()
        case target:
            agents.symlink_to(den.workspace / target)


PLANTED = ("../outside/secret", "../outside/.ssh/id_rsa", "AGENTS.md", "a pipe", "a folder")


@pytest.mark.parametrize("kind", PLANTED)
async def test_instructions_that_lead_elsewhere_are_not_sent_to_the_model(
    den: Den, kind: str
) -> None:
    plant(den, kind)
    model = ScriptedModel(lambda _: ScriptedReply(text="Well."))
    async with hosting(den, model=model) as app:
        result = await (await (await app.open()).send("hi")).result()
    assert result.outcome == "completed"
    assert SECRET not in model.asked[0].system


async def test_a_hidden_file_of_the_workspace_is_not_sent_by_another_name(den: Den) -> None:
    """The workspace is the user's own folder; the file there has two names."""
    den.workspace = den.outside
    (den.outside / ".netrc").write_text(SECRET)
    os.link(den.outside / ".netrc", den.outside / "AGENTS.md")
    model = ScriptedModel(lambda _: ScriptedReply(text="Well."))
    async with hosting(den, model=model, confinement="on") as app:
        await (await (await app.open()).send("hi")).result()
    assert SECRET not in model.asked[0].system


async def test_a_link_within_the_workspace_is_followed(den: Den) -> None:
    (den.workspace / "docs").mkdir()
    (den.workspace / "docs/rules.md").write_text("Be brief.")
    (den.workspace / "AGENTS.md").symlink_to("docs/rules.md")
    model = ScriptedModel(lambda _: ScriptedReply(text="Well."))
    async with hosting(den, model=model) as app:
        await (await (await app.open()).send("hi")).result()
    assert "Be brief." in model.asked[0].system


CHANGING = """
import keryx_tools as tools
tools.write_file("app.py", "one\\n")
"""


@pytest.mark.parametrize("target", ["secret", ".ssh/id_rsa", "keryx/config.toml"])
async def test_a_diff_shows_nothing_of_what_a_link_leads_to(den: Den, target: str) -> None:
    if target != "secret":
        den.workspace = den.outside  # which holds what is hidden
    async with hosting(den, confinement="on") as app:
        handle = await app.open(approvals="never")
        await execute(handle, CHANGING)
        (den.workspace / "app.py").unlink()
        (den.workspace / "app.py").symlink_to(den.outside / target)
        shown = await handle.diff()
    assert SECRET not in shown
    assert "confinement" not in shown
    assert "app.py" in shown
