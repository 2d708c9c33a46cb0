"""Writes the generated parts of the documents in `docs/tools`, from the tools themselves.

`make docs` runs this; a test fails if a page is not what it would write now. Each page is one
family of tools. Only the lines between the two markers are written: the text around them is by
hand. `docs/tools/README.md` is a table of all tools; how each one stops comes from
`docs/cancelling.md`, which is measured, and nothing else is.
"""
# ruff: noqa: INP001 (a script of the documents, which are no package)

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from keryx.ports.effects import Access, Effects
from keryx.ports.tool import Risk, Tool
from keryx.sandbox.scripts import ExecuteCode
from keryx.tools import browser, toolsets
from keryx.tools.media.settings import MediaSettings

FOLDER = Path(__file__).parent / "tools"
INDEX = FOLDER / "README.md"
MEASURED = Path(__file__).parent / "cancelling.md"
BEGIN = "<!-- made by `make docs` from the tools; edit the text above or below -->"
END = "<!-- end of what `make docs` makes -->"
WORKSPACE = Path("/workspace")
SETTINGS = toolsets.WebSettings(searxng_url="http://127.0.0.1:8888")
"""So that all tools are there, whatever this machine has."""

MEDIA = MediaSettings(image=True, speech=True, transcription=True)

EXAMPLES: Mapping[str, dict[str, Any]] = {
    "read_file": {"path": "notes.txt"},
    "write_file": {"path": "notes.txt", "content": "Hello\n"},
    "patch": {"patch": "*** Begin Patch\n*** Delete File: notes.txt\n*** End Patch\n"},
    "search_files": {"pattern": "herald"},
    "list_files": {"path": "."},
    "terminal": {"command": "ls -l"},
    "process": {"action": "list"},
    "clarify": {"question": "Which one?", "choices": ["the first", "the second"]},
    "delegate": {"tasks": [{"task": "Read the docs and list broken links", "read_only": True}]},
    "todo": {"items": [{"text": "Read", "status": "done"}, {"text": "Write", "status": "doing"}]},
    "vision_analyze": {"image": "picture.png"},
    "mixture_of_agents": {"question": "Which of the two designs is simpler?"},
    "session_search": {"words": "herald"},
    "web_search": {"query": "herald of the gods"},
    "web_extract": {"urls": ["https://example.org/"]},
    "tool_search": {"query": "printers"},
    "skill": {"name": "letters"},
    "browser_navigate": {"url": "https://example.org/"},
    "browser_snapshot": {},
    "browser_click": {"ref": "e4"},
    "browser_type": {"ref": "e3", "text": "apples"},
    "browser_press": {"key": "Enter"},
    "browser_scroll": {"direction": "down"},
    "browser_back": {},
    "browser_screenshot": {},
    "browser_console": {},
    "browser_close": {},
    "execute_code": {"code": "print(1 + 1)"},
    "image_generate": {"prompt": "A herald with a staff"},
    "text_to_speech": {"text": "Hear, hear!"},
    "transcribe": {"path": "speech.wav"},
    "memory": {"action": "add", "text": "The user drinks green tea."},
    "conclude": {"text": "The user prefers short answers."},
    "recall": {"words": "tea"},
}
"""A call of each tool. Effects and risk depend on the arguments, so they are shown for this one."""

REPLAYS = {
    "never": "never: after a crash its outcome is `unknown`",
    "safe": "safe: it runs again after a crash",
    "keyed": "keyed: after a crash it runs again with the same id, and finds what it had begun",
}


def families() -> dict[str, list[Tool]]:
    """Return all built-in tools by family, also those that need something this machine lacks."""
    sets = toolsets.built_in(web=SETTINGS, media=MEDIA, memory=True)
    sets["browser"] = browser.browser_tools(None, confined=True)
    sets["code"] = [ExecuteCode()]
    return sets


def pages() -> dict[Path, str]:
    """Return every page as it should be; raises if a page or one of its markers is missing."""
    sets = families()
    texts = {FOLDER / f"{family}.md": "\n".join(_family(sets[family])) for family in sets}
    texts[INDEX] = "\n".join(_index(sets))
    return {file: _with_generated(file, text) for file, text in texts.items()}


def _with_generated(file: Path, generated: str) -> str:
    text = file.read_text()
    pattern = re.compile(f"{re.escape(BEGIN)}\n.*?{re.escape(END)}", re.DOTALL)
    parts, count = pattern.subn(lambda _: f"{BEGIN}\n\n{generated}\n\n{END}", text)
    if count != 1:
        raise SystemExit(f"{file} must have these two lines once:\n{BEGIN}\n{END}")
    return parts


# -- the page of a family


def _family(tools: list[Tool]) -> Iterator[str]:
    yield "## Reference"
    for tool in tools:
        yield ""
        yield f"### `{tool.name}`"
        yield ""
        yield _prose(tool.description)
        yield ""
        yield from _parameters(tool)
        yield from _facts(tool)


def _prose(text: str) -> str:
    """Return a description for models as Markdown: patches are code, tags are no tags."""
    patch = re.compile(r"^\*\*\* Begin Patch\n.*?^\*\*\* End Patch$", re.DOTALL | re.MULTILINE)
    code = patch.sub(lambda match: f"```diff\n{match[0]}\n```", text.strip())
    return re.sub(r"<(?=\w)", r"\\<", code)


def _parameters(tool: Tool) -> Iterator[str]:
    rows = list(_rows(tool.parameters, tool.parameters, ""))
    if not rows:
        yield "It takes no parameters."
        yield ""
        return
    yield "| parameter | type | default | meaning |"
    yield "|---|---|---|---|"
    yield from rows
    yield ""


def _rows(schema: Mapping[str, Any], root: Mapping[str, Any], above: str) -> Iterator[str]:
    required = schema.get("required", ())
    attributes = _attributes(schema.get("description", ""))
    for name, value in schema.get("properties", {}).items():
        field = _resolved(value, root)
        default = "required" if name in required else f"`{json.dumps(field.get('default'))}`"
        meaning = _cell(value.get("description", "") or attributes.get(name, ""))
        kind = _cell(_type(field, root))
        yield f"| `{above}{name}` | {kind} | {default} | {meaning} |"
        items = _resolved(field.get("items", {}), root)
        yield from _rows(items, root, f"{above}{name}[].")


def _attributes(description: str) -> dict[str, str]:
    """Return what the docstring of a class says of each field."""
    _, _, section = description.partition("Attributes:\n")
    entries = re.findall(r"^ *(\w+): (.+(?:\n {12,}.+)*)", section, re.MULTILINE)
    return dict(entries)


def _resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema that this one refers to."""
    reference = schema.get("$ref", "")
    if not reference:
        return schema
    rest = {key: value for key, value in schema.items() if key != "$ref"}
    return {**root["$defs"][reference.rsplit("/", 1)[-1]], **rest}


def _type(schema: Mapping[str, Any], root: Mapping[str, Any]) -> str:
    field = _resolved(schema, root)
    if "enum" in field:
        return ", ".join(f"`{json.dumps(value)}`" for value in field["enum"])
    if "anyOf" in field:
        return " or ".join(_type(choice, root) for choice in field["anyOf"])
    kind: str | list[str] = field.get("type", "any")
    if kind == "array":
        return f"array of {_type(field.get('items', {}), root)}"
    return " or ".join(kind) if isinstance(kind, list) else kind


def _facts(tool: Tool) -> Iterator[str]:
    example = EXAMPLES[tool.name]
    arguments = tool.parse(example)
    risk = tool.risk(arguments, WORKSPACE)
    timeout = "none of its own" if tool.timeout is None else f"{tool.timeout:g} s"
    yield "| property | value |"
    yield "|---|---|"
    yield f"| example | `{_cell(json.dumps(example, ensure_ascii=False))}` |"
    yield f"| effects of the example | {_cell(_effects(tool.effects(arguments)))} |"
    yield f"| risk of the example | {_cell(_risk(risk))} |"
    yield f"| replay | {REPLAYS[tool.replay]} |"
    yield f"| runs | {_place(tool)} |"
    yield f"| timeout | {timeout} |"


def _risk(risk: Risk) -> str:
    return f"{risk.level}: {risk.why}" if risk.why else risk.level


def _place(tool: Tool) -> str:
    if tool.container:
        return "on the event loop; it calls other tools, and holds no slot"
    places = {"loop": "on the event loop", "thread": "in a thread", "process": "in a process"}
    return places[tool.isolation]


def _effects(effects: Effects) -> str:
    if effects.exclusive:
        return "may use anything, so it runs alone"
    return "; ".join(map(_access, effects.accesses)) or "none"


def _access(access: Access) -> str:
    verb = "writes" if access.writes else "reads"
    subject = f"`{access.name}`" if access.kind == "path" else f"the resource `{access.name}`"
    beside = f", beside others of the kind `{access.peers}`" if access.peers else ""
    return f"{verb} {subject}{beside}"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


# -- the table of all tools


def _index(sets: Mapping[str, list[Tool]]) -> Iterator[str]:
    measured = measurements()
    yield "| tool | family | long-running? | how it stops | measured | outcome |"
    yield "|---|---|---|---|---|---|"
    for family, tools in sets.items():
        for tool in tools:
            cells = " | ".join(measured[tool.name])
            yield f"| `{tool.name}` | [{family}]({family}.md) | {cells} |"


def measurements() -> dict[str, tuple[str, ...]]:
    """Return the cells that `docs/cancelling.md` has for each tool."""
    rows: dict[str, tuple[str, ...]] = {}
    for line in MEASURED.read_text().splitlines():
        if match := re.match(r"\| `(\w+)` \| (.*) \|$", line):
            rows[match[1]] = tuple(cell.strip() for cell in match[2].split("|"))
    return rows


def main() -> None:
    for file, text in pages().items():
        file.write_text(text)


if __name__ == "__main__":
    main()
