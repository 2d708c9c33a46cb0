"""Says what is wrong with arguments, in words that a model can act on.

Runs only after a decoder refused, so it may take its time: it looks at the schema and at the
value again to name every missing and unknown field, what was allowed and what came. Knows
schemas and values, nothing of functions. It never fails: at worst it repeats the decoder.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NoReturn

import msgspec

from keryx.tools.function.foreign import DEFS, Flaw, ModelRefusedError, is_array, is_object

MESSAGE_LIMIT = 1_000
"""Characters of one message: enough to act on, too little to flood a model's context."""

_VALUE_LIMIT = 80
_TEXT_LIMIT = 300
_NAMES_LIMIT = 20
_PLACES_LIMIT = 1_000  # values behind one `[...]` that are looked at, for the loop is waiting
_FLAWS_LIMIT = 5

_PATH = re.compile(r"`(\$[^`]*)`")
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")
_LONE_SURROGATE = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")

Path = tuple[str | int, ...]
"""The way to a value; `...` stands for any of a container's values, as msgspec writes it."""

UNSEEN: object = object()
"""Stands for arguments that could not be read a second time."""

_ANY = "..."
_Schema = Mapping[str, Any]


def clipped(text: str, limit: int) -> str:
    """At most `limit` characters of a text, and none that UTF-8 cannot carry."""
    if len(text) > limit:
        text = text[: limit - 1] + "…"
    try:
        text.encode()
    except UnicodeEncodeError:
        return clipped(text.encode(errors="backslashreplace").decode(), limit)
    return text


def malformed(text: str, error: Exception) -> str:
    """Why a text is not JSON, and where."""
    try:
        json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as found:
        near = text[max(found.pos - 20, 0) : found.pos + 20]
        what = found.msg.removesuffix(" at")
        return (
            f"not valid JSON: {what} at line {found.lineno}, column {found.colno}, "
            f"near {_quoted(near)}; send one complete JSON object"
        )
    except (ValueError, RecursionError) as found:
        return f"not valid JSON: {found}"
    if _LONE_SURROGATE.search(text):
        return "not valid JSON: a \\u escape is half of a surrogate pair; write both or neither"
    return f"not valid JSON: {error}"


def refused(error: Exception, value: object, schema: _Schema) -> str:
    """What a decoder refused. `value` is the whole of the arguments as plain data."""
    text, _, place = str(error).rpartition(" - at ")
    found = _PATH.fullmatch(place)
    if found is None:
        text, path = str(error), "$"
    else:
        path = found[1]
    words = f"`{clipped(path, _TEXT_LIMIT)}`: {clipped(text, _TEXT_LIMIT)}"
    steps = _steps(path)
    if steps is None:
        return words
    if isinstance(error.__cause__, ModelRefusedError):
        return _model_refused(error.__cause__.flaws, steps, value, schema)
    if text.startswith("Object "):
        return _fields(steps, value, schema) or words
    return f"`{clipped(path, _TEXT_LIMIT)}`: {_mismatch(text, steps, value, schema)}"


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} does not exist in JSON; send null or a number")


def _model_refused(flaws: Sequence[Flaw], steps: Path, value: object, schema: _Schema) -> str:
    said: list[str] = []
    done: set[Path] = set()
    for flaw in flaws:
        parent = (*steps, *flaw.where[:-1])
        is_field = bool(flaw.where) and flaw.kind in {"missing", "extra_forbidden"}
        if is_field and parent in done:
            continue
        if len(said) == _FLAWS_LIMIT:
            said.append("and more")
            break
        words = _fields(parent, value, schema) if is_field else None
        if words:
            done.add(parent)
        said.append(
            words or f"`{_shown((*steps, *flaw.where))}`: {clipped(flaw.text, _TEXT_LIMIT)}"
        )
    return "; ".join(said)


def _mismatch(text: str, steps: Path, value: object, schema: _Schema) -> str:
    """A value of the wrong kind: what was expected, and what came."""
    words = clipped(text, _TEXT_LIMIT)
    for came, kinds in _reached(steps, value, schema):
        allowed = [choice for kind in kinds for choice in kind.get("enum", ())]
        if allowed and text.startswith("Invalid"):
            names = _listed((_quoted(choice) for choice in allowed), len(allowed))
            return f"Expected one of {names}, got {_quoted(came)}"
        if _ANY not in steps and came is not UNSEEN:
            words = f"{words} (it was {_quoted(came)})"
            return words if steps else f"{words}; send one JSON object"
    return words


def _fields(steps: Path, value: object, schema: _Schema) -> str | None:
    """Every field that is missing or unknown at this place."""
    for came, kinds in _reached(steps, value, schema):
        if not is_object(came):
            continue
        for kind in kinds:
            if "properties" not in kind or not _is_tagged_for(kind, came):
                continue
            if words := _field_words(kind, dict.fromkeys(map(str, came))):
                return f"`{_shown(steps)}`: {words}"
    return None


def _field_words(kind: _Schema, given: Mapping[str, object]) -> str:
    allowed: dict[str, Any] = kind["properties"]
    missing = [name for name in kind.get("required", ()) if name not in given]
    unknown: list[str] = []
    if kind.get("additionalProperties") is False:
        unknown = [name for name in given if name not in allowed]
    words: list[str] = []
    if missing:
        words.append(f"missing required {_plural('field', missing)} {_ticked(missing)}")
    if unknown:
        suggested = (_with_suggestion(name, allowed) for name in unknown)
        listed = _listed(suggested, len(unknown))
        words.append(f"unknown {_plural('field', unknown)} {listed}")
        words.append(f"allowed: {_ticked(allowed)}" if allowed else "no fields are allowed")
    return "; ".join(words)


def _with_suggestion(name: str, allowed: Iterable[str]) -> str:
    shown = f"`{clipped(name, _VALUE_LIMIT)}`"
    close = difflib.get_close_matches(name[:_VALUE_LIMIT], list(allowed), n=1)
    return f"{shown} (did you mean `{close[0]}`?)" if close else shown


def _is_tagged_for(kind: _Schema, value: _Schema) -> bool:
    """Whether this branch of a union is meant; what tells branches apart has one choice only."""
    for name, allowed in kind["properties"].items():
        choices: Sequence[Any] = allowed.get("enum", ()) if is_object(allowed) else ()
        if len(choices) == 1 and name in value and value[name] not in choices:
            return False
    return True


def _reached(steps: Path, value: object, schema: _Schema) -> Iterator[tuple[object, list[_Schema]]]:
    """The values that a path leads to, each with what the schema allows there."""
    here = [(value, list(_branches(schema, schema)))]
    for step in steps:
        ahead = (inside for came, kinds in here for inside in _inside(step, came, kinds))
        here = [
            (inner, [branch for kind in allowed for branch in _branches(kind, schema)])
            for inner, allowed in islice(ahead, _PLACES_LIMIT)
        ]
    yield from here


def _inside(
    step: str | int, came: object, kinds: Sequence[_Schema]
) -> Iterator[tuple[object, list[_Schema]]]:
    if is_object(came):
        if step == _ANY:
            for inner in came.values():
                yield inner, _below(kinds, "additionalProperties")
        elif isinstance(step, str) and step in came:
            named = [kind["properties"].get(step) for kind in kinds if "properties" in kind]
            allowed = [kind for kind in named if is_object(kind)]
            yield came[step], allowed or _below(kinds, "additionalProperties")
    elif is_array(came):
        if step == _ANY:
            for inner in came:
                yield inner, _below(kinds, "items")
        elif isinstance(step, int) and step < len(came):
            rows = [kind["prefixItems"] for kind in kinds if "prefixItems" in kind]
            fixed = [row[step] for row in rows if step < len(row)]
            yield came[step], fixed or _below(kinds, "items")


def _below(kinds: Sequence[_Schema], key: str) -> list[_Schema]:
    return [kind[key] for kind in kinds if is_object(kind.get(key))]


def _branches(kind: _Schema, root: _Schema) -> Iterator[_Schema]:
    """A schema's alternatives with references followed, each once."""
    seen: set[str] = set()
    waiting = [kind]
    while waiting:
        kind = waiting.pop(0)
        reference = kind.get("$ref")
        if isinstance(reference, str):
            if reference not in seen:
                seen.add(reference)
                waiting.append(root["$defs"][reference.removeprefix(DEFS)])
            continue
        alternatives = [*kind.get("anyOf", ()), *kind.get("oneOf", ())]
        waiting += alternatives
        if not alternatives:
            yield kind


def _steps(path: str) -> Path | None:
    """A path as msgspec writes it, taken apart; None if a name in it cannot be told apart."""
    found = list(_STEP.finditer(path, 1))
    if sum(len(step[0]) for step in found) != len(path) - 1:
        return None
    return tuple(step[1] or (int(step[2]) if step[2] != _ANY else _ANY) for step in found)


def _shown(steps: Path) -> str:
    parts = (
        f".{step}" if isinstance(step, str) and step != _ANY else f"[{step}]" for step in steps
    )
    return clipped("$" + "".join(parts), _TEXT_LIMIT)


def _quoted(value: object) -> str:
    try:
        text = msgspec.json.encode(value).decode()
    except (TypeError, ValueError, OverflowError, RecursionError):
        text = f"a {type(value).__name__}"
    return clipped(text, _VALUE_LIMIT)


def _ticked(names: Collection[str]) -> str:
    return _listed((f"`{clipped(name, _VALUE_LIMIT)}`" for name in names), len(names))


def _listed(names: Iterator[str], count: int) -> str:
    """The first of many; the others are not even looked at."""
    more = count - _NAMES_LIMIT
    return ", ".join(islice(names, _NAMES_LIMIT)) + (f" and {more} more" if more > 0 else "")


def _plural(noun: str, things: Sequence[object]) -> str:
    return noun if len(things) == 1 else f"{noun}s"
