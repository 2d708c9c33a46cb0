"""From a function's signature to the struct of its arguments and their JSON schema.

Owns which parameters and types a tool may have. Knows nothing of docstrings, of parsing and
of what else a tool declares.
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

from keryx.errors import InvalidToolError
from keryx.ports.tool import ToolContext
from keryx.tools.function import foreign

_STRUCT = "Arguments"
_PLAIN = (str, int, float, bytes, enum.Enum, types.NoneType, msgspec.UnsetType)
"""Values that nobody can change, so that every call may share them."""

_UNBUILDABLE = (TypeError, NameError, RuntimeError)
"""What msgspec and pydantic raise for types without a schema; pydantic's is a RuntimeError."""


class Signature(msgspec.Struct, frozen=True):
    """What the parameters of a function say."""

    struct: type[msgspec.Struct]
    schema: dict[str, Any]
    names: tuple[str, ...]
    context: str | None
    """The parameter that takes the context; it is not an argument."""


def read_signature(
    function: Callable[..., Any], descriptions: Mapping[str, str], local: Mapping[str, Any]
) -> Signature:
    """Read a function's parameters; `local` are the names where it was defined."""
    parameters = _parameters(function)
    kinds = {
        name: _resolved(function, name, parameter.annotation, local)
        for name, parameter in parameters.items()
    }
    contexts = [name for name, kind in kinds.items() if _is_context(kind)]
    if len(contexts) > 1:
        raise InvalidToolError(
            f"parameters `{contexts[0]}` and `{contexts[1]}` both take the ToolContext: keep one"
        )
    arguments = {name: parameters[name] for name in parameters if name not in contexts}
    _check_metadata({name: kinds[name] for name in arguments})
    kinds = {name: _described(kinds[name]) for name in arguments}
    fields = [
        (name, kinds[name], _field(parameter.default)) for name, parameter in arguments.items()
    ]
    try:
        struct, schema = _built(fields)
    except _UNBUILDABLE as error:
        raise _unsupported(fields, error) from error
    for name, parameter in arguments.items():
        _complete(schema["properties"][name], name, kinds[name], parameter.default)
        if name in descriptions:
            schema["properties"][name].setdefault("description", descriptions[name])
    return Signature(struct, schema, tuple(arguments), contexts[0] if contexts else None)


def names_around(function: Callable[..., Any], frame: types.FrameType | None) -> dict[str, Any]:
    """The names that the function's annotations may use besides its module's.

    Those are the variables that it closes over and, if `frame` is where it was defined, the
    variables there. A frame that only passes by must not give its names another meaning.
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
        raise _undefined("an annotation", error) from error
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
        raise InvalidToolError(f"parameter `{name}` has a name of Python's own kind: rename it")
    if parameter.annotation is not inspect.Parameter.empty:
        return
    if position == 0 and name in {"self", "cls"}:
        raise InvalidToolError(
            "a method cannot be a tool in its class: decorate a function, "
            "or call tool(object.method) on an object"
        )
    raise InvalidToolError(f"parameter `{name}` has no annotation: write `{name}: str`, say")


def _resolved(
    function: Callable[..., Any], name: str, annotation: Any, local: Mapping[str, Any]
) -> Any:
    """One annotation with strings resolved. The others, and the result's, don't matter here."""
    inner = _innermost(function)
    lone = types.FunctionType(inner.__code__, inner.__globals__, closure=inner.__closure__)
    lone.__annotations__ = {name: annotation}
    known = dict(local)
    if "ToolContext" not in inner.__globals__:
        known.setdefault("ToolContext", ToolContext)  # it may be imported for type checkers only
    try:
        return typing.get_type_hints(lone, localns=known, include_extras=True)[name]
    except NameError as error:
        raise _undefined(f"the annotation of `{name}`", error) from error
    except (TypeError, AttributeError, SyntaxError) as error:
        raise InvalidToolError(
            f"the annotation of `{name}`, {annotation!r}, is not a type: {error}"
        ) from error


def _undefined(what: str, error: NameError) -> InvalidToolError:
    return InvalidToolError(
        f"{what} names `{error.name}`, which is not defined where the function is: define or "
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


def _described(kind: Any) -> Any:
    """The type with each text in an `Annotated` as the description that it stands for.

    The text may also stand in a `Doc("...")`; what a `msgspec.Meta` says comes first.
    """
    if get_origin(kind) is Annotated:
        inner, metadata = _described(kind.__origin__), kind.__metadata__
        text = next(filter(None, map(_text_of, metadata)), None)
        described = () if text is None else (msgspec.Meta(description=text),)
        return Annotated[inner, *described, *metadata]
    arguments = get_args(kind)
    parts = tuple(map(_described, arguments))
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
    """Refuse a pydantic `Field` outside a model: its bounds would silently not hold."""
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
    if isinstance(default, _PLAIN):
        return msgspec.field(default=default)
    return msgspec.field(default_factory=lambda: copy.deepcopy(default))


def _built(fields: list[tuple[str, Any, Any]]) -> tuple[type[msgspec.Struct], dict[str, Any]]:
    struct = msgspec.defstruct(
        _STRUCT, fields, forbid_unknown_fields=True, kw_only=True, frozen=True
    )
    models = foreign.Models()
    whole = msgspec.json.schema(struct, schema_hook=models.hold)
    if models.unknown:
        raise TypeError(f"type {models.unknown[0]!r} is not supported")
    defs: dict[str, Any] = whole["$defs"]
    own = defs.pop(whole["$ref"].removeprefix(foreign.DEFS))
    schema = {key: own[key] for key in ("type", "properties", "required", "additionalProperties")}
    if defs:
        schema["$defs"] = defs
    return struct, models.add_to(schema)


def _unsupported(fields: list[tuple[str, Any, Any]], error: Exception) -> InvalidToolError:
    """Find the parameter that is to blame."""
    for name, kind, _ in fields:
        try:
            _built([(name, kind, msgspec.field())])
        except NameError as found:
            return _undefined(f"the type of parameter `{name}`", found)
        except _UNBUILDABLE as found:
            lines = str(found).splitlines()
            why = lines[-1 if isinstance(found, TypeError) else 0]
            return InvalidToolError(
                f"parameter `{name}` cannot come from JSON: {why}; use plain types, Literal, "
                "Enum, a dataclass, TypedDict, msgspec.Struct or pydantic model"
            )
    return InvalidToolError(f"the parameters cannot come from JSON: {error}")


def _complete(schema: dict[str, Any], name: str, kind: Any, default: Any) -> None:
    """Check a default against its type, and say it in the schema if JSON can."""
    schema.pop("default", None)
    if default is inspect.Parameter.empty or default is msgspec.UNSET:
        return
    try:
        plain = msgspec.to_builtins(
            default, str_keys=True, order="deterministic", enc_hook=foreign.encode
        )
        msgspec.convert(plain, kind, str_keys=True, dec_hook=foreign.decode)
    except (TypeError, ValueError, NotImplementedError) as error:
        hint = f"annotate it `{name}: ... | None`" if default is None else "change one of them"
        raise InvalidToolError(
            f"the default of parameter `{name}` does not fit its type: {error}; {hint}"
        ) from error
    try:
        schema["default"] = json.loads(json.dumps(plain, allow_nan=False))
    except ValueError:  # JSON has no infinity
        return
