"""A second process that uses the files of notes of a home.

`python -m tests.memory.note_writer add FOLDER PREFIX COUNT` adds memories.
`... die FOLDER STEP ID TEXT` adds one, and dies before its STEP-th step on the disk.
`... save FOLDER/user.md in_place|by_rename OLD NEW` edits as a person.
`... hold FOLDER/user.md TEXT` keeps the file open for writing until its input ends.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from keryx.memory.providers.notes import note_file, safe_files
from keryx.testing.memory_contract import memory, store
from tests.memory.people import open_notes, save_by_rename, save_in_place

STEPS = 12
"""More than a change has."""


async def add(folder: Path, prefix: int, count: int) -> None:
    async with open_notes(folder) as notes:
        for number in range(prefix, prefix + count):
            await store(notes, memory(number, f"Memory {number}."))


async def die(folder: Path, step: int, number: int, text: str) -> None:
    left = [step]

    def dying(work: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **named: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                os._exit(9)
            return work(*arguments, **named)

        return run

    for name in ("exchange", "rename_to_free", "write_file", "remove_file"):
        setattr(note_file, name, dying(getattr(note_file, name)))
    for name in ("rename", "replace", "write"):
        setattr(os, name, dying(getattr(os, name)))
    assert safe_files
    async with open_notes(folder) as notes:
        await store(notes, memory(number, text))


def hold(path: Path, text: str) -> None:
    with path.open("a") as file:
        sys.stdout.write("open\n")
        sys.stdout.flush()
        sys.stdin.read()
        file.write(text)


def main(task: str, folder: str, *rest: str) -> None:
    path = Path(folder)
    match task, rest:
        case "add", (prefix, count):
            asyncio.run(add(path, int(prefix), int(count)))
        case "die", (step, number, text):
            asyncio.run(die(path, int(step), int(number), text))
        case "save", (editor, old, new):
            save = save_in_place if editor == "in_place" else save_by_rename
            save(path, lambda content: content.replace(old, new))
        case "hold", (text,):
            hold(path, text)
        case _:
            raise SystemExit(f"unknown task {task}")


if __name__ == "__main__":
    main(*sys.argv[1:])
