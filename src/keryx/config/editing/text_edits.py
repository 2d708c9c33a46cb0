"""Changes settings in the text of a TOML file. Everything else stays as it is, byte for byte.

No comment is lost: the comment of a setting that is removed becomes a line of its own. The result
is compared with the change on plain data; if they differ, the file is not changed at all.
"""

from __future__ import annotations

import copy
import itertools
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

import msgspec

from keryx.config.editing.errors import CannotEditError
from keryx.config.editing.statements import Header, Pair, Path, Statement, comments, statements
from keryx.config.editing.values import changed_array, render, render_key

ABSENT: Final = msgspec.UNSET
"""No value: the setting is not in the file, or is to be removed."""


class Change(msgspec.Struct, frozen=True):
    """A new value for the setting at a path. `before` is what the person saw there."""

    path: Path
    value: Any = ABSENT
    before: Any = ABSENT


def value_at(document: Mapping[str, Any], path: Path) -> Any:
    """Return the value at the path; `ABSENT` if there is none."""
    value: Any = document
    for name in path:
        if not isinstance(value, Mapping) or name not in value:
            return ABSENT
        value = cast("Mapping[str, Any]", value)[name]
    return value


def applied(document: Mapping[str, Any], changes: Iterable[Change]) -> dict[str, Any]:
    """Return a copy of the plain data with the changes."""
    result = copy.deepcopy(dict(document))
    for change in changes:
        table = result
        for name in change.path[:-1]:
            if change.value is ABSENT and name not in table:
                break
            inner: object = table.setdefault(name, {})
            if not isinstance(inner, dict):
                raise CannotEditError(
                    f"{name} in config.toml is no table, so {'.'.join(change.path)} cannot be set; "
                    "change it by hand"
                )
            table = cast("dict[str, Any]", inner)
        else:
            if change.value is ABSENT:
                table.pop(change.path[-1], None)
            else:
                table[change.path[-1]] = copy.deepcopy(change.value)
    return result


def edited(text: str, changes: Iterable[Change]) -> str:
    """Return the text with the changes; `CannotEditError` if the text must be changed by hand."""
    changes = tuple(changes)
    expected = applied(tomllib.loads(text), changes)
    result = text
    try:
        for change in changes:
            result = _change(result, change.path, change.value)
        if "\n" not in text.replace("\r\n", "") and "\r\n" in text:
            result = result.replace("\r\n", "\n").replace("\n", "\r\n")  # as the others end
        result.encode()
        is_right = _pruned(tomllib.loads(result)) == _pruned(expected)
    except (ValueError, IndexError, TypeError) as error:
        raise _by_hand(changes) from error
    if not is_right or Counter(comments(text)) - Counter(comments(result)):
        raise _by_hand(changes)
    return result


def _by_hand(changes: Iterable[Change]) -> CannotEditError:
    names = ", ".join(".".join(change.path) for change in changes)
    return CannotEditError(
        f"{names} in config.toml is written in a way that cannot be changed here; change it by hand"
    )


def _pruned(value: Any) -> Any:
    """Return the value without empty tables: they say nothing."""
    if not isinstance(value, dict):
        return value
    items = {name: _pruned(item) for name, item in cast("dict[str, Any]", value).items()}
    return {name: item for name, item in items.items() if item != {}}


def _change(text: str, path: Path, value: Any) -> str:
    old_value = value_at(tomllib.loads(text), path)
    if old_value == value and type(old_value) is type(value):
        return text
    holder = _holder(statements(text), path)
    if holder is not None:
        return _change_pair(text, holder, path, value)
    if isinstance(value, dict) and isinstance(old_value, dict):
        old, new = cast("dict[str, Any]", old_value), cast("dict[str, Any]", value)
        return _change_table(text, path, old, new)
    if old_value is not ABSENT:
        text = _remove(text, path)
    return text if value is ABSENT else _add(text, path, value)


def _holder(items: Iterable[Statement], path: Path) -> Pair | None:
    """Return the pair whose value is at this path, or contains it."""
    pairs = (item for item in items if isinstance(item, Pair) and not item.is_in_array)
    return next((pair for pair in pairs if path[: len(pair.path)] == pair.path), None)


def _change_pair(text: str, pair: Pair, path: Path, value: Any) -> str:
    if pair.path == path and value is ABSENT:
        return _without(text, pair.start, pair.end)
    start, end = pair.value
    old = text[start:end]
    if pair.path == path:
        is_array = isinstance(value, list) and old.startswith("[")
        new = changed_array(old, cast("list[Any]", value)) if is_array else render(value)
    else:
        inner = tomllib.loads(f"value = {old}")
        new = render(applied(inner, (Change(("value", *path[len(pair.path) :]), value),))["value"])
    lost = Counter(comments(old)) - Counter(comments(new))
    lines = "".join(f"{comment}\n" for comment in lost.elements())
    return f"{text[: pair.start]}{lines}{text[pair.start : start]}{new}{text[end:]}"


def _change_table(text: str, path: Path, old: dict[str, Any], new: dict[str, Any]) -> str:
    for name in old.keys() - new.keys():
        text = _change(text, (*path, name), ABSENT)
    for name, item in new.items():
        text = _change(text, (*path, name), item)
    return text


def _remove(text: str, path: Path) -> str:
    """Remove all statements at or below the path; their comments stay."""
    for item in reversed(statements(text)):
        if item.path[: len(path)] == path:
            text = _without(text, item.start, item.end)
    return text


def _without(text: str, start: int, end: int) -> str:
    lines = "".join(f"{comment}\n" for comment in comments(text, start, end))
    if not lines and text[:start].endswith("\n\n") and text[end:].startswith("\n"):
        end += 1  # one empty line is enough
    return text[:start] + lines + text[end:]


def _add(text: str, path: Path, value: Any) -> str:
    """Add a setting that is not there."""
    items = statements(text)
    parent = path[:-1]
    if isinstance(value, dict) and not _dotted(items, parent):
        pairs = cast("dict[str, Any]", value).items()
        lines = "".join(f"{render_key((name,))} = {render(item)}\n" for name, item in pairs)
        return _add_section(text, items, path, lines)
    line = f"{render_key(path[-1:])} = {render(value)}\n"
    headers = [item for item in items if isinstance(item, Header)]
    header = next((item for item in headers if item.path == parent and not item.is_array), None)
    if header is not None:
        last = max(pair.end for pair in (header, *_pairs_of(items, header)))
        return _inserted(text, last, line)
    if sibling := _dotted(items, parent):
        depth = len(sibling.path) - len(sibling.key)
        dotted = f"{render_key(path[depth:])} = {render(value)}\n"
        return _inserted(text, sibling.end, dotted)
    if parent:
        return _add_section(text, items, parent, line)
    roots = _pairs_of(items, None)
    return _inserted(text, roots[-1].end, line) if roots else _add_first(text, line)


def _pairs_of(items: Iterable[Statement], section: Header | None) -> list[Pair]:
    return [item for item in items if isinstance(item, Pair) and item.section == section]


def _dotted(items: Iterable[Statement], parent: Path) -> Pair | None:
    """Return the last pair that defines this table by a key with dots; no header may do so too."""
    pairs = [
        item
        for item in items
        if isinstance(item, Pair)
        and item.path[: len(parent)] == parent
        and len(item.path) - len(item.key) < len(parent)
        and not item.is_in_array
    ]
    return pairs[-1] if pairs else None


def _add_section(text: str, items: list[Statement], path: Path, lines: str) -> str:
    """Add `[path]` after the last section of the same family, or at the end of the file."""
    position = len(text)
    is_family = False
    for item, following in itertools.pairwise((*items, None)):
        assert item is not None
        is_family = is_family or (len(path) > 1 and item.path[: len(path) - 1] == path[:-1])
        if is_family and (following is None or isinstance(following, Header)):
            position, is_family = item.end, False  # the section of the family ends here
    section = f"[{render_key(path)}]\n{lines}"
    before = "\n" if text[:position].strip() and not text[:position].endswith("\n\n") else ""
    after = "\n" if text[position:].strip() and not text[position:].startswith("\n") else ""
    return _inserted(text, position, f"{before}{section}{after}")


def _add_first(text: str, line: str) -> str:
    """Add a setting before all tables, below the comment that heads the file if there is one."""
    heading = text.partition("\n\n")[0]
    is_comment = all(row.startswith("#") for row in heading.splitlines()) and "\n\n" in text
    position = len(heading) + 2 if heading and is_comment else 0
    after = "\n" if text[position:].strip() else ""
    return _inserted(text, position, f"{line}{after}")


def _inserted(text: str, position: int, lines: str) -> str:
    head = text[:position]
    return f"{head}{'' if not head or head.endswith(chr(10)) else chr(10)}{lines}{text[position:]}"
