"""Turns a function's signature into the struct of its arguments and their JSON schema.

It owns which parameters and types a tool may have. It knows nothing of docstrings, of parsing
and of the other declarations of a tool.
"""

from __future__ import annotations

import copy
import enum
import inspect
import json
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, get_args, get_origin

import msgspec

from keryx.decoding import convert
from keryx.errors import InvalidToolError
from keryx.ports.tool_context import ToolContext
from keryx.tools.function import foreign

_STRUCT = "Arguments"
_IMMUTABLE = (str, int, float, bytes, enum.Enum, types.NoneType, msgspec.UnsetType)
"""Types of immutable defaults, which all calls can share."""

_SCHEMA_ERRORS = (TypeError, NameError, RuntimeError)
"""The errors of msgspec and pydantic for types without a schema."""


class Signature(msgspec.Struct, frozen=True):
    """The parameters of a function, as a struct and as a schema."""

    struct: type[msgspec.Struct]
    schema: dict[str, Any]
    names: tuple[str, ...]
    context: str | None
    """The parameter for the context; it is not an argument."""


def read_signature(
    function: Callable[..., Any], descriptions: Mapping[str, str], local: Mapping[str, Any]
) -> Signature:
    """Read a function's parameters; `local` are the names where it was defined."""
    parameters = _parameters(function)
    kinds = {
        name: _resolve_annotation(function, name, parameter.annotation, local)
        for name, parameter in parameters.items()
    }
    contexts = [name for name, kind in kinds.items() if _is_context(kind)]
    if len(contexts) > 1:
        raise InvalidToolError(
            f"parameters `{contexts[0]}` and `{contexts[1]}` both take the ToolContext: keep one"
        )
    arguments = {name: parameters[name] for name in parameters if name not in contexts}
    _check_metadata({name: kinds[name] for name in arguments})
    kinds = {name: _with_description(kinds[name]) for name in arguments}
    fields = [
        (name, kinds[name], _field(parameter.default)) for name, parameter in arguments.items()
    ]
    try:
        struct, schema = _build(fields)
    except _SCHEMA_ERRORS as error:
        raise _unsupported_error(fields, error) from error
    for name, parameter in arguments.items():
        _add_default(schema["properties"][name], name, kinds[name], parameter.default)
        if name in descriptions:
            schema["properties"][name].setdefault("description", descriptions[name])
    return Signature(struct, schema, tuple(arguments), contexts[0] if contexts else None)


def names_around(function: Callable[..., Any], frame: types.FrameType | None) -> dict[str, Any]:
    """Return the names that the function's annotations may use besides those of its module.

    These are its closure variables and, if `frame` defined the function, the variables of that
    frame. A frame that did not define it must not change the meaning of its names.
    """
    inner = _innermost(function)
    cells = zip(inner.__code__.co_freevars, inner.__closure__ or (), strict=False)
    names: dict[str, Any] = {}
    if frame is not None and inner.__code__ in frame.f_code.co_consts:
        names |= frame.f_locals
    for name, cell in cells:
        try:
            names[name] = cell.cell_contents
        except ValueError:  # the variable has no value yet
            continue
    return names


def _innermost(function: Callable[..., Any]) -> types.FunctionType:
    inner = inspect.unwrap(function)
    inner = getattr(inner, "__func__", inner)
    assert isinstance(inner, types.FunctionType)
    return inner


def _parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    try:
        parameters = dict(inspect.signature(function).parameters)
    except NameError as error:
        raise _undefined_error("an annotation", error) from error
    for position, (name, parameter) in enumerate(parameters.items()):
        _check_parameter(position, name, parameter)
    return parameters


def _check_parameter(position: int, name: str, parameter: inspect.Parameter) -> None:
    match parameter.kind:
        case inspect.Parameter.VAR_POSITIONAL:
            raise InvalidToolError(f"`*{name}` has no schema: take a list[...] instead")
        case inspect.Parameter.VAR_KEYWORD:
            raise InvalidToolError(f"`**{name}` has no schema: name each parameter, or take a dict")
        case inspect.Parameter.POSITIONAL_ONLY:
            raise InvalidToolError(
                f"parameter `{name}` is positional-only, arguments come by name: remove the `/`"
            )
        case _:
            pass
    if name.startswith("__"):
        raise InvalidToolError(f"parameter `{name}` has a name that Python reserves: rename it")
    if parameter.annotation is not inspect.Parameter.empty:
        return
    if position == 0 and name in {"self", "cls"}:
        raise InvalidToolError(
            "a method cannot be a tool in its class: decorate a function, "
            "or call tool(object.method) on an object"
        )
    raise InvalidToolError(f"parameter `{name}` has no annotation: write `{name}: str`, say")


def _resolve_annotation(
    function: Callable[..., Any], name: str, annotation: Any, local: Mapping[str, Any]
) -> Any:
    """Resolve the strings in one annotation; errors in the other annotations do not matter."""
    inner = _innermost(function)
    bare_function = types.FunctionType(inner.__code__, inner.__globals__, closure=inner.__closure__)
    bare_function.__annotations__ = {name: annotation}
    local_names = dict(local)
    if "ToolContext" not in inner.__globals__:
        local_names.setdefault(
            "ToolContext", ToolContext
        )  # it may be imported for type checkers only
    try:
        return typing.get_type_hints(bare_function, localns=local_names, include_extras=True)[name]
    except NameError as error:
        raise _undefined_error(f"the annotation of `{name}`", error) from error
    except (TypeError, AttributeError, SyntaxError) as error:
        raise InvalidToolError(
            f"the annotation of `{name}`, {annotation!r}, is not a type: {error}"
        ) from error


def _undefined_error(subject: str, error: NameError) -> InvalidToolError:
    return InvalidToolError(
        f"{subject} names `{error.name}`, which is not defined where the function is: define or "
        "import it at module level, and not for type checkers only"
    )


def _is_context(kind: Any) -> bool:
    return any(ToolContext in getattr(part, "__mro__", ()) for part in _alternatives(kind))


def _alternatives(kind: Any) -> Iterator[Any]:
    origin = get_origin(kind)
    if origin is Annotated:
        yield from _alternatives(get_args(kind)[0])
    elif origin in {typing.Union, types.UnionType}:
        for part in get_args(kind):
            yield from _alternatives(part)
    else:
        yield kind


def _with_description(kind: Any) -> Any:
    """Return the type with each text in an `Annotated` as a description for msgspec.

    The text may also be in a `Doc("...")`; a description in a `msgspec.Meta` wins.
    """
    if get_origin(kind) is Annotated:
        inner, metadata = _with_description(kind.__origin__), kind.__metadata__
        text = next(filter(None, map(_text_of, metadata)), None)
        meta = () if text is None else (msgspec.Meta(description=text),)
        return Annotated[inner, *meta, *metadata]
    arguments = get_args(kind)
    parts = tuple(map(_with_description, arguments))
    if all(new is old for new, old in zip(parts, arguments, strict=True)):
        return kind
    if get_origin(kind) in {typing.Union, types.UnionType}:
        return typing.Union[parts]  # noqa: UP007 (the parts are known only now)
    if hasattr(kind, "copy_with"):
        return kind.copy_with(parts)
    return get_origin(kind)[parts]


def _text_of(metadata: object) -> str | None:
    text = metadata if isinstance(metadata, str) else getattr(metadata, "documentation", None)
    return text.strip() if isinstance(text, str) else None


def _check_metadata(kinds: Mapping[str, Any]) -> None:
    """Refuse a pydantic `Field` outside a model: its bounds would silently be ignored."""
    fields = sys.modules.get("pydantic.fields")
    if fields is None:
        return
    for name, kind in kinds.items():
        for part in _parts(kind):
            if isinstance(part, fields.FieldInfo):
                raise InvalidToolError(
                    f"parameter `{name}` uses pydantic's Field outside a model: "
                    "write msgspec.Meta(...), or take a model"
                )


def _parts(kind: Any) -> Iterator[Any]:
    yield kind
    if get_origin(kind) is Annotated:
        yield from kind.__metadata__
    for part in get_args(kind):
        yield from _parts(part)


def _field(default: Any) -> Any:
    if default is inspect.Parameter.empty:
        return msgspec.field()
    if isinstance(default, _IMMUTABLE):
        return msgspec.field(default=default)
    return msgspec.field(default_factory=lambda: copy.deepcopy(default))


def _build(fields: list[tuple[str, Any, Any]]) -> tuple[type[msgspec.Struct], dict[str, Any]]:
    struct = msgspec.defstruct(
        _STRUCT, fields, forbid_unknown_fields=True, kw_only=True, frozen=True
    )
    models = foreign.Models()
    document = msgspec.json.schema(struct, schema_hook=models.add_placeholder)
    if models.unsupported:
        raise TypeError(f"type {models.unsupported[0]!r} is not supported")
    defs: dict[str, Any] = document["$defs"]
    arguments = defs.pop(document["$ref"].removeprefix(foreign.DEFS))
    schema = {
        key: arguments[key] for key in ("type", "properties", "required", "additionalProperties")
    }
    if defs:
        schema["$defs"] = defs
    return struct, models.add_to(schema)


def _unsupported_error(fields: list[tuple[str, Any, Any]], error: Exception) -> InvalidToolError:
    """Return the error, with the parameter that causes it."""
    for name, kind, _ in fields:
        try:
            _build([(name, kind, msgspec.field())])
        except NameError as cause:
            return _undefined_error(f"the type of parameter `{name}`", cause)
        except _SCHEMA_ERRORS as cause:
            lines = str(cause).splitlines()
            reason = lines[-1 if isinstance(cause, TypeError) else 0]
            return InvalidToolError(
                f"parameter `{name}` cannot come from JSON: {reason}; use plain types, Literal, "
                "Enum, a dataclass, TypedDict, msgspec.Struct or pydantic model"
            )
    return InvalidToolError(f"the parameters cannot come from JSON: {error}")


def _add_default(schema: dict[str, Any], name: str, kind: Any, default: Any) -> None:
    """Check a default against its type, and add it to the schema if JSON can represent it."""
    schema.pop("default", None)
    if default is inspect.Parameter.empty or default is msgspec.UNSET:
        return
    try:
        plain = msgspec.to_builtins(
            default, str_keys=True, order="deterministic", enc_hook=foreign.encode
        )
        convert(plain, kind, str_keys=True, dec_hook=foreign.decode)
    except (TypeError, ValueError, NotImplementedError) as error:
        hint = f"annotate it `{name}: ... | None`" if default is None else "change one of them"
        raise InvalidToolError(
            f"the default of parameter `{name}` does not fit its type: {error}; {hint}"
        ) from error
    try:
        schema["default"] = json.loads(json.dumps(plain, allow_nan=False))
    except ValueError:  # JSON has no infinity
        return
