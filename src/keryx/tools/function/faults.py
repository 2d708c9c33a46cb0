"""Explains what is wrong with arguments, in words that a model can act on.

It runs only after a decoder refused, so it may be slow: it compares the schema and the value again
to name every missing and unknown field, what is allowed and what was received. It knows schemas and
values, nothing of functions. It never fails: at worst it repeats the decoder's message.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NoReturn

import msgspec

from keryx.tools.function.foreign import DEFS, ModelFault, ModelRefusedError, is_array, is_object

MESSAGE_LIMIT = 1_000
"""The most characters of one message: enough to act on, too few to fill a model's context."""

_VALUE_LIMIT = 80
_TEXT_LIMIT = 300
_NAMES_LIMIT = 20
_PLACES_LIMIT = 1_000  # the most values behind one `[...]`, because the loop waits
_FAULTS_LIMIT = 5

_PATH = re.compile(r"`(\$[^`]*)`")
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")
_LONE_SURROGATE = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")

Path = tuple[str | int, ...]
"""The path of a value; `...` is any value of a container, as msgspec writes it."""

UNREADABLE: object = object()
"""A placeholder for arguments that could not be decoded a second time."""

_ANY = "..."
_Schema = Mapping[str, Any]


def clip(text: str, limit: int) -> str:
    """Return at most `limit` characters of a text, without characters that UTF-8 lacks."""
    if len(text) > limit:
        text = text[: limit - 1] + "…"
    try:
        text.encode()
    except UnicodeEncodeError:
        return clip(text.encode(errors="backslashreplace").decode(), limit)
    return text


def explain_malformed(text: str, error: Exception) -> str:
    """Return why a text is not JSON, and where."""
    try:
        json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as json_error:
        near = text[max(json_error.pos - 20, 0) : json_error.pos + 20]
        problem = json_error.msg.removesuffix(" at")
        return (
            f"not valid JSON: {problem} at line {json_error.lineno}, column {json_error.colno}, "
            f"near {_quoted(near)}; send one complete JSON object"
        )
    except (ValueError, RecursionError) as json_error:
        return f"not valid JSON: {json_error}"
    if _LONE_SURROGATE.search(text):
        return "not valid JSON: a \\u escape is half of a surrogate pair; write both or neither"
    return f"not valid JSON: {error}"


def explain_refusal(error: Exception, value: object, schema: _Schema) -> str:
    """Return what a decoder refused. `value` is all arguments as plain data."""
    text, _, place = str(error).rpartition(" - at ")
    path_match = _PATH.fullmatch(place)
    if path_match is None:
        text, path = str(error), "$"
    else:
        path = path_match[1]
    words = f"`{clip(path, _TEXT_LIMIT)}`: {clip(text, _TEXT_LIMIT)}"
    steps = _steps(path)
    if steps is None:
        return words
    if isinstance(error.__cause__, ModelRefusedError):
        return _model_refused(error.__cause__.faults, steps, value, schema)
    if text.startswith("Object "):
        return _fields_message(steps, value, schema) or words
    return f"`{clip(path, _TEXT_LIMIT)}`: {_mismatch(text, steps, value, schema)}"


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} does not exist in JSON; send null or a number")


def _model_refused(
    faults: Sequence[ModelFault], steps: Path, value: object, schema: _Schema
) -> str:
    messages: list[str] = []
    reported: set[Path] = set()
    for fault in faults:
        parent = (*steps, *fault.path[:-1])
        is_field = bool(fault.path) and fault.kind in {"missing", "extra_forbidden"}
        if is_field and parent in reported:
            continue
        if len(messages) == _FAULTS_LIMIT:
            messages.append("and more")
            break
        words = _fields_message(parent, value, schema) if is_field else None
        if words:
            reported.add(parent)
        messages.append(
            words or f"`{_path_text((*steps, *fault.path))}`: {clip(fault.text, _TEXT_LIMIT)}"
        )
    return "; ".join(messages)


def _mismatch(text: str, steps: Path, value: object, schema: _Schema) -> str:
    """Return what was expected and what was received, for a value of the wrong type."""
    words = clip(text, _TEXT_LIMIT)
    for received, kinds in _values_at(steps, value, schema):
        allowed = [choice for kind in kinds for choice in kind.get("enum", ())]
        if allowed and text.startswith("Invalid"):
            names = _listed((_quoted(choice) for choice in allowed), len(allowed))
            return f"Expected one of {names}, got {_quoted(received)}"
        if _ANY not in steps and received is not UNREADABLE:
            words = f"{words} (it was {_quoted(received)})"
            return words if steps else f"{words}; send one JSON object"
    return words


def _fields_message(steps: Path, value: object, schema: _Schema) -> str | None:
    """Return every missing and unknown field at this path."""
    for received, kinds in _values_at(steps, value, schema):
        if not is_object(received):
            continue
        for kind in kinds:
            if "properties" not in kind or not _is_tagged_for(kind, received):
                continue
            if words := _field_message(kind, dict.fromkeys(map(str, received))):
                return f"`{_path_text(steps)}`: {words}"
    return None


def _field_message(kind: _Schema, names: Mapping[str, object]) -> str:
    allowed: dict[str, Any] = kind["properties"]
    missing = [name for name in kind.get("required", ()) if name not in names]
    unknown: list[str] = []
    if kind.get("additionalProperties") is False:
        unknown = [name for name in names if name not in allowed]
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
    quoted = f"`{clip(name, _VALUE_LIMIT)}`"
    close = difflib.get_close_matches(name[:_VALUE_LIMIT], list(allowed), n=1)
    return f"{quoted} (did you mean `{close[0]}`?)" if close else quoted


def _is_tagged_for(kind: _Schema, value: _Schema) -> bool:
    """Return whether the value can be this branch of a union: a tag has one choice only."""
    for name, allowed in kind["properties"].items():
        choices: Sequence[Any] = allowed.get("enum", ()) if is_object(allowed) else ()
        if len(choices) == 1 and name in value and value[name] not in choices:
            return False
    return True


def _values_at(
    steps: Path, value: object, schema: _Schema
) -> Iterator[tuple[object, list[_Schema]]]:
    """Yield the values at a path, each with the schemas that are allowed there."""
    places = [(value, list(_branches(schema, schema)))]
    for step in steps:
        inner_places = (
            inner_place
            for received, kinds in places
            for inner_place in _step_into(step, received, kinds)
        )
        places = [
            (inner, [branch for kind in allowed for branch in _branches(kind, schema)])
            for inner, allowed in islice(inner_places, _PLACES_LIMIT)
        ]
    yield from places


def _step_into(
    step: str | int, received: object, kinds: Sequence[_Schema]
) -> Iterator[tuple[object, list[_Schema]]]:
    if is_object(received):
        if step == _ANY:
            for inner in received.values():
                yield inner, _subschemas(kinds, "additionalProperties")
        elif isinstance(step, str) and step in received:
            properties = [kind["properties"].get(step) for kind in kinds if "properties" in kind]
            allowed = [kind for kind in properties if is_object(kind)]
            yield received[step], allowed or _subschemas(kinds, "additionalProperties")
    elif is_array(received):
        if step == _ANY:
            for inner in received:
                yield inner, _subschemas(kinds, "items")
        elif isinstance(step, int) and step < len(received):
            rows = [kind["prefixItems"] for kind in kinds if "prefixItems" in kind]
            fixed = [row[step] for row in rows if step < len(row)]
            yield received[step], fixed or _subschemas(kinds, "items")


def _subschemas(kinds: Sequence[_Schema], key: str) -> list[_Schema]:
    return [kind[key] for kind in kinds if is_object(kind.get(key))]


def _branches(kind: _Schema, root: _Schema) -> Iterator[_Schema]:
    """Yield a schema's alternatives; each reference is followed once."""
    followed: set[str] = set()
    queue = [kind]
    while queue:
        kind = queue.pop(0)
        reference = kind.get("$ref")
        if isinstance(reference, str):
            if reference not in followed:
                followed.add(reference)
                queue.append(root["$defs"][reference.removeprefix(DEFS)])
            continue
        alternatives = [*kind.get("anyOf", ()), *kind.get("oneOf", ())]
        queue += alternatives
        if not alternatives:
            yield kind


def _steps(path: str) -> Path | None:
    """Split a path of msgspec into steps; None if a name in it is ambiguous."""
    steps = list(_STEP.finditer(path, 1))
    if sum(len(step[0]) for step in steps) != len(path) - 1:
        return None
    return tuple(step[1] or (int(step[2]) if step[2] != _ANY else _ANY) for step in steps)


def _path_text(steps: Path) -> str:
    parts = (
        f".{step}" if isinstance(step, str) and step != _ANY else f"[{step}]" for step in steps
    )
    return clip("$" + "".join(parts), _TEXT_LIMIT)


def _quoted(value: object) -> str:
    try:
        text = msgspec.json.encode(value).decode()
    except (TypeError, ValueError, OverflowError, RecursionError):
        text = f"a {type(value).__name__}"
    return clip(text, _VALUE_LIMIT)


def _ticked(names: Collection[str]) -> str:
    return _listed((f"`{clip(name, _VALUE_LIMIT)}`" for name in names), len(names))


def _listed(names: Iterator[str], count: int) -> str:
    """Join the first names; the others are only counted."""
    more = count - _NAMES_LIMIT
    return ", ".join(islice(names, _NAMES_LIMIT)) + (f" and {more} more" if more > 0 else "")


def _plural(noun: str, items: Sequence[object]) -> str:
    return noun if len(items) == 1 else f"{noun}s"
