"""What a script finds in the package: a function for each granted tool, and no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.guest.script_processes import run
from tests.guest.server import Server


def test_a_function_looks_as_if_it_had_been_written_for_its_tool(
    tmp_path: Path, address: str
) -> None:
    result = run(
        tmp_path,
        """
        import inspect, json, pydoc
        from keryx_tools import terminal
        print(json.dumps({
            "name": terminal.__name__,
            "module": terminal.__module__,
            "signature": str(inspect.signature(terminal)),
            "annotations": sorted(terminal.__annotations__),
            "help": pydoc.render_doc(terminal, renderer=pydoc.plaintext),
        }))
        """,
        address,
    )
    assert result["name"] == "terminal"
    assert result["module"] == "keryx_tools"
    assert result["signature"].startswith("(command: str, timeout: ")
    assert result["signature"].endswith("-> keryx_tools._results.Result")
    assert result["annotations"] == ["_deadline", "command", "return", "timeout"]
    assert "Run a command." in result["help"]


TYPES = """
import inspect, json, os, typing
tool = {"name": "odd", "positional": ["first", "then"], "parameters": {
    "required": ["then"],
    "properties": {
        "first": {"type": "integer", "default": 3},
        "then": {"enum": ["a", "b"]},
        "many": {"type": "array", "items": {"type": "number"}},
        "maybe": {"type": ["string", "null"]},
        "either": {"anyOf": [{"type": "boolean"}, {"type": "object"}]},
        "from": {"type": "string", "description": "where it comes from"},
    },
}}
os.environ["KERYX_TOOLS_GRANTED"] = json.dumps([tool])
import keryx_tools
parameters = inspect.signature(keryx_tools.odd).parameters
assert list(parameters) == ["first", "then", "many", "maybe", "either", "_deadline", "more"]
assert parameters["first"].annotation is int and parameters["first"].default == 3
assert parameters["then"].annotation == typing.Literal["a", "b"]
assert parameters["many"].annotation == typing.Optional[typing.Sequence[float]]
assert parameters["maybe"].annotation == typing.Optional[str]
assert parameters["either"].annotation == typing.Union[bool, dict, None]
assert "from: where it comes from" in keryx_tools.odd.__doc__
"""


def test_signatures_say_in_python_what_schemas_say(tmp_path: Path, address: str) -> None:
    run(tmp_path, TYPES, address)


def test_arguments_go_by_position_and_by_name(tmp_path: Path, address: str) -> None:
    result = run(
        tmp_path,
        """
        import json, pathlib
        from keryx_tools import whatever
        print(json.dumps([
            whatever(1, 2)["given"],
            whatever(1, timeout=2.5)["given"],
            whatever(timeout=None, value=None)["given"],
            whatever(pathlib.Path("a/b"))["given"],
            whatever(("a", "ä"))["given"],
        ]))
        """,
        address,
    )
    assert result == [
        {"value": 1, "timeout": 2},
        {"value": 1, "timeout": 2.5},
        {"value": None},
        {"value": "a/b"},
        {"value": ["a", "ä"]},
    ]


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("echo()", "TypeError: echo() misses: tag"),
        ("echo('a', tag='b')", "TypeError: echo() got multiple values for argument 'tag'"),
        ("echo('a', 1, 2)", "TypeError: echo() takes 2 positional arguments, not 3"),
        ("echo('a', dealy=1)", "TypeError: echo() has no argument 'dealy'; it has: tag, delay"),
        ("echo(b'a')", "TypeError: a tool takes JSON; a bytes is not JSON"),
        ("echo('a', float('nan'))", "ValueError: Out of range float values are not JSON compliant"),
        ("echo('\\udc80')", "UnicodeEncodeError: 'utf-8' codec can't encode character"),
    ],
)
def test_what_cannot_be_a_call_is_refused_before_anything_is_sent(
    tmp_path: Path, server: Server, address: str, expression: str, error: str
) -> None:
    result = run(
        tmp_path,
        f"""
        import json
        from keryx_tools import echo
        try:
            {expression}
        except Exception as error:
            print(json.dumps(f"{{type(error).__name__}}: {{error}}"))
        """,
        address,
    )
    assert result.startswith(error)
    assert server.connections == 0


UNGRANTED = """
import json, keryx_tools, keryx_tools.aio
said = []
for code in (
    "from {} import nothing", "import {0}; {0}.nothing",
    "from {}.aio import nothing", "import {0}.aio; {0}.aio.nothing",
):
    try:
        exec(code.format("MODULE"))
    except (ImportError, AttributeError) as error:
        said.append([type(error).__name__, str(error)])
assert not hasattr(keryx_tools, "nothing") and not hasattr(keryx_tools.aio, "nothing")
print(json.dumps(said))
"""


@pytest.mark.parametrize("module", ["keryx_tools", "hermes_tools"])
def test_what_is_not_granted_is_not_there_and_the_error_says_what_is(
    tmp_path: Path, address: str, module: str
) -> None:
    grant = '[{"name": "echo"}, {"name": "count"}]'
    errors = run(tmp_path, UNGRANTED.replace("MODULE", module), address, KERYX_TOOLS_GRANTED=grant)
    text = "no tool 'nothing' is granted to this script; granted: count, echo"
    assert errors == [["ImportError", text], ["AttributeError", text]] * 2


@pytest.mark.parametrize("grant", ["", "[]"])
def test_no_grant_is_no_tool(tmp_path: Path, address: str, grant: str) -> None:
    result = run(
        tmp_path,
        "import json, keryx_tools; print(json.dumps(dir(keryx_tools)))",
        address,
        KERYX_TOOLS_GRANTED=grant,
    )
    assert [name for name in result if name[0].islower()] == ["finish", "parallel"]


def test_a_grant_may_be_in_a_file_and_a_bad_one_is_named(tmp_path: Path, address: str) -> None:
    file = tmp_path / "granted.json"
    file.write_text('[{"name": "count", "positional": ["key"]}]')
    result = run(
        tmp_path,
        """
        import json, os
        from keryx_tools import count
        os.environ["KERYX_TOOLS_GRANTED"] = "/nowhere"
        try:
            from keryx_tools import count
        except ImportError as error:
            print(json.dumps([count("a"), str(error)]))
        """,
        address,
        KERYX_TOOLS_GRANTED=str(file),
    )
    assert result[0] == {"count": 1}
    assert result[1].startswith("KERYX_TOOLS_GRANTED cannot be read: FileNotFoundError")


def test_the_old_name_has_the_same_functions(tmp_path: Path, address: str) -> None:
    run(
        tmp_path,
        """
        import hermes_tools, hermes_tools.aio, keryx_tools, keryx_tools.aio
        from hermes_tools import *
        assert terminal is hermes_tools.terminal is keryx_tools.terminal
        assert hermes_tools.aio.terminal is keryx_tools.aio.terminal is not terminal
        assert hermes_tools.parallel is parallel is keryx_tools.parallel
        assert ToolError is keryx_tools.ToolError
        assert dir(hermes_tools) == dir(keryx_tools)
        assert dir(hermes_tools.aio) == dir(keryx_tools.aio)
        """,
        address,
    )


def test_results_are_dicts_and_texts(tmp_path: Path, address: str) -> None:
    run(
        tmp_path,
        """
        import copy, json, pickle
        from keryx_tools import big, count, terminal
        res = terminal("echo hello", timeout=10)
        assert res.get("output", "").strip() == "hello" and res["exit_code"] == 0
        assert isinstance(res, dict) and json.loads(str(res)) == res == res.value
        text = big(3)
        assert text["output"] == text["text"] == str(text) == f"{text}" == text.text == "xxx"
        assert text.value is None
        for same in (copy.copy(res), pickle.loads(pickle.dumps(res))):
            assert (same, same.text, same.value) == (res, res.text, res.value)
        """,
        address,
    )


def test_errors_arrive_as_exceptions_with_the_tool_s_message(tmp_path: Path, address: str) -> None:
    run(
        tmp_path,
        """
        import pickle
        import keryx_tools
        from keryx_tools import fail
        kinds = ["ToolFailedError", "ToolDeniedError", "ToolCancelledError", "ToolUnknownError"]
        for kind in kinds:
            try:
                fail("not today", kind)
            except keryx_tools.ToolError as error:
                assert type(error) is getattr(keryx_tools, kind)
                for same in (error, pickle.loads(pickle.dumps(error))):
                    assert (str(same), same.tool, type(same)) == ("not today", "fail", type(error))
        try:
            fail("odd", "SomethingElse")
        except keryx_tools.ToolFailedError as error:
            assert str(error) == "odd"
        lost = keryx_tools.ToolConnectionError("gone", "echo", True)
        lost = pickle.loads(pickle.dumps(lost))
        assert isinstance(lost, ConnectionError) and lost.may_have_run and str(lost) == "gone"
        """,
        address,
    )
