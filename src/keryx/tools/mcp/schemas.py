"""Checks the schemas of MCP tools, and arguments and results against them.

A schema comes from a server and may be anything. Nothing outside of it is looked up.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from itertools import islice
from typing import Any, Final, cast

MOST_PROBLEMS: Final = 5
LONGEST_PROBLEM: Final = 300
MOST_CHECKS: Final = 10_000
"""Keywords of a schema that are checked for one call. References can multiply them without end."""
# Python's regular expressions have no time limit, and a server could send one that never ends.
# The others compare everything with everything, or follow references uncounted.
# The server checks all of these by itself.
_SKIPPED: Final = (
    *("pattern", "patternProperties", "format"),
    *("uniqueItems", "unevaluatedItems", "unevaluatedProperties"),
)


def load() -> None:
    """Import what the checks need, in a thread: it is large."""
    importlib.import_module("jsonschema")
    importlib.import_module("referencing")


def normalized(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema as model providers expect it: an object with properties."""
    return {**schema, "type": "object", "properties": schema.get("properties") or {}}


class _TooManyChecksError(Exception):
    """The check of these arguments takes too long."""


class _Count:
    """How many keywords were checked for one call."""

    checks = 0

    def counted(self, check: Any) -> Any:
        def run(*args: Any) -> Any:
            self.checks += 1
            if self.checks > MOST_CHECKS:
                raise _TooManyChecksError
            return check(*args)

        return run


class ArgumentsCheck:
    """Checks the arguments, or the results, of one tool. Its validator is built on first use."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        self._count = _Count()
        self._validator: Any = None

    def problems(self, arguments: object) -> list[str]:
        """Return why the arguments do not match the schema; an empty list if they do."""
        self._count.checks = 0
        try:
            if self._validator is None:
                self._validator = _validator(self._schema, self._count)
            errors = [*islice(self._validator.iter_errors(arguments), MOST_PROBLEMS)]
        except RecursionError:
            return ["the arguments are nested too deeply"]
        except Exception as error:  # noqa: BLE001 (the schema passed its check; the server decides the rest)
            del error
            return []
        return [_shortened(f"{error.message} (at {error.json_path})") for error in errors]


def problem_of(schema: Mapping[str, Any]) -> str | None:
    """Return why this cannot be the schema of arguments; None if it can. May take milliseconds."""
    if schema.get("type", "object") != "object":
        return f"its type is {schema['type']!r:.40}, and must be 'object'"
    exceptions: Any = importlib.import_module("jsonschema.exceptions")
    unresolvable: Any = importlib.import_module("referencing.exceptions").Unresolvable
    try:
        validator = _validator(schema, _Count())
        validator.check_schema(schema)
        _resolve_references(schema)
    except exceptions.SchemaError as error:
        return _shortened(f"{error.message} (at {error.json_path})")
    except unresolvable as error:
        return _shortened(f"it refers to {error.ref!r}, which is not in it")
    except RecursionError:
        return "it is nested too deeply"
    except Exception as error:  # noqa: BLE001 (the library fails in many ways on a malformed schema)
        return _shortened(f"{type(error).__name__}: {error}")
    return None


def _resolve_references(schema: Mapping[str, Any]) -> None:
    """Raise `Unresolvable` if a reference points outside of the schema."""
    referencing: Any = importlib.import_module("referencing")
    newest: Any = importlib.import_module("referencing.jsonschema").DRAFT202012
    resource = referencing.Resource.from_contents(schema, default_specification=newest)
    pending: list[tuple[Any, Any]] = [
        (resource, referencing.Registry().resolver_with_root(resource))
    ]
    while pending:
        part, resolver = pending.pop()
        if isinstance(part.contents, Mapping):
            fields = cast("Mapping[str, object]", part.contents)
            for keyword in ("$ref", "$dynamicRef"):
                if isinstance(reference := fields.get(keyword), str):
                    resolver.lookup(reference)
        pending += [(child, resolver.in_subresource(child)) for child in part.subresources()]


def _validator(schema: Mapping[str, Any], count: _Count) -> Any:
    validators: Any = importlib.import_module("jsonschema.validators")
    referencing: Any = importlib.import_module("referencing")
    kind = validators.validator_for(schema, default=validators.Draft202012Validator)
    checks = {name: count.counted(check) for name, check in kind.VALIDATORS.items()}
    checks |= dict.fromkeys(_SKIPPED, _accept)
    if _has_name_patterns(schema):
        checks["additionalProperties"] = _accept
    # Without this empty registry, the library would fetch what a schema refers to.
    return validators.extend(kind, checks)(schema, registry=referencing.Registry())


def _has_name_patterns(schema: object) -> bool:
    if isinstance(schema, Mapping):
        fields = cast("Mapping[str, object]", schema)
        return "patternProperties" in fields or any(map(_has_name_patterns, fields.values()))
    if isinstance(schema, list):
        return any(map(_has_name_patterns, cast("list[object]", schema)))
    return False


def _accept(*_: object) -> tuple[()]:
    return ()


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_PROBLEM else text[: LONGEST_PROBLEM - 1] + "…"
