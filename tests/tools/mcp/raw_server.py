"""A server that speaks the protocol by hand, so that it can also break it. Standard library only.

`python raw_server.py BEHAVIOUR [ARGUMENT]`. It starts fast, and does what no library would do.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

BEHAVIOUR = sys.argv[1] if len(sys.argv) > 1 else "plain"
ARGUMENT = sys.argv[2] if len(sys.argv) > 2 else ""
waiting: list[Any] = []
requests: list[str] = []
OBJECT = {"type": "object", "properties": {"text": {"type": "string"}}}


def write(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def send(message: dict[str, Any]) -> None:
    write(json.dumps({"jsonrpc": "2.0", **message}))


def tools() -> list[dict[str, Any]]:
    echo: dict[str, Any] = {"name": "echo", "description": "Say it again.", "inputSchema": OBJECT}
    match BEHAVIOUR:
        case "bad schemas":
            wrong: list[dict[str, Any]] = [
                {"type": "object", "properties": {"a": {"type": "no such type"}}},
                {"type": "array"},
                {
                    "type": "object",
                    "properties": {"a": {"$ref": "#/$defs/missing"}},
                    "required": [],
                },
                {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/x.json"}}},
                {"type": "object", "description": "x" * 100_000},
            ]
            listed = [
                {"name": f"bad{at}", "inputSchema": schema} for at, schema in enumerate(wrong)
            ]
            return [*listed, {"name": "good", "inputSchema": OBJECT}]
        case "doubled references":
            echo["inputSchema"] = doubled_references(60)
        case "endless pattern" | "other structure":
            pattern = "^(a+)+$" if BEHAVIOUR == "endless pattern" else ".*"
            text: dict[str, Any] = {"type": "string", "pattern": pattern, "minLength": 3}
            echo["outputSchema"] = {"type": "object", "properties": {"text": text}}
        case "same names":
            return [{"name": name, "inputSchema": OBJECT} for name in ("a b", "a/b", "x" * 200)]
        case "many":
            return [many_tool(number) for number in range(int(ARGUMENT))]
        case "escapes":
            echo["description"] = "\x1b[2KNothing to see.\u202e\nMore."
        case "always changes":
            echo["description"] = f"Listed {requests.count('tools/list')} times."
        case _:
            pass
    return [echo]


def doubled_references(levels: int) -> dict[str, Any]:
    """A small schema that takes 2 ** levels checks."""
    parts: dict[str, Any] = {
        f"p{at}": {"allOf": [{"$ref": f"#/$defs/p{at + 1}"}] * 2} for at in range(levels)
    }
    parts[f"p{levels}"] = {"type": "string"}
    return {"type": "object", "properties": {"text": {"$ref": "#/$defs/p0"}}, "$defs": parts}


def many_tool(number: int) -> dict[str, Any]:
    """A tool as large as those of real servers: some parameters, each with a sentence."""
    verb = ("list", "create", "delete", "update", "search")[number % 5]
    thing = ("invoice", "customer", "ticket", "branch", "calendar")[number // 5 % 5]
    properties = {
        f"field_{at}": {
            "type": "string",
            "description": f"The value number {at} that the {thing} has, as the service stores it.",
        }
        for at in range(8)
    }
    return {
        "name": f"{verb}_{thing}_{number}",
        "description": f"{verb.title()} the {thing} of the kind {number} in the company's service.",
        "inputSchema": {"type": "object", "properties": properties, "required": ["field_0"]},
    }


def call(request: dict[str, Any]) -> None:
    text = str(request["params"].get("arguments", {}).get("text", ""))
    result: dict[str, Any] = {"content": [{"type": "text", "text": f"echo: {text}"}]}
    match BEHAVIOUR:
        case "asks later":
            waiting.append(request["id"])
            if len(waiting) < 2:
                return
            result["content"][0]["text"] = json.dumps(ask(json.loads(text)))
            send({"id": waiting.pop(0), "result": result})
        case "asks":
            result["content"][0]["text"] = f"answer: {json.dumps(ask(json.loads(text)))}"
        case "hangs":
            send({"method": "notifications/progress", "params": progress(request)})
            return
        case "wrong result":
            send({"id": request["id"], "result": {"content": "not a list"}})
            return
        case "endless pattern" | "other structure":
            result["structuredContent"] = {"text": text}
        case "wrong ids":
            send({"id": 999_999, "result": result})
            send({"id": "x", "result": result})
        case _:
            misbehave(request)
    send({"id": request["id"], "result": result})


def misbehave(request: dict[str, Any]) -> None:
    match BEHAVIOUR:
        case "dies":
            sys.stderr.write("my last words\n")
            sys.stderr.flush()
            os._exit(3)
        case "always changes":
            for _ in range(500):
                send({"method": "notifications/tools/list_changed"})
        case "long note":
            note = {**progress(request), "message": "x" * 1_000_000}
            send({"method": "notifications/progress", "params": note})
        case "stops reading":
            send({"method": "notifications/progress", "params": progress(request)})
            time.sleep(1000)
        case "garbage":
            write("this is a log line on stdout")
            write('{"jsonrpc": "2.0", "id": ')
            write("[" * 100_000)
            sys.stdout.buffer.write(b"\xff\xfe\n")
        case "huge line":
            sys.stdout.write("x" * (17 * 1024 * 1024))
            sys.stdout.flush()
            time.sleep(1000)
        case "only garbage":
            for _ in range(1_100):
                write("not a message")
            time.sleep(1000)
        case _:
            pass


def ask(request: dict[str, Any]) -> Any:
    """Send a request of the server to the client, and return the answer."""
    send({"id": "question", **request})
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("id") == "question":
            return message.get("result", message.get("error"))
    return None


def progress(request: dict[str, Any]) -> dict[str, Any]:
    token = request["params"]["_meta"]["progressToken"]
    return {"progressToken": token, "progress": 1, "message": "hanging"}


def handle(request: dict[str, Any]) -> None:
    requests.append(request.get("method", ""))
    match request.get("method"):
        case "initialize":
            if BEHAVIOUR == "never initializes":
                return
            result: dict[str, Any] = {
                "protocolVersion": request["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "raw", "version": "1"},
            }
            send({"id": request["id"], "result": result})
        case "tools/list":
            if BEHAVIOUR == "never lists":
                return
            send({"id": request["id"], "result": {"tools": tools()}})
        case "tools/call":
            call(request)
        case "notifications/cancelled" if ARGUMENT:
            Path(ARGUMENT).write_text("cancelled")
        case _ if "id" in request:
            send({"id": request["id"], "error": {"code": -32601, "message": "no such method"}})
        case _:
            pass


def main() -> None:
    if BEHAVIOUR == "dies at once":
        sys.stderr.write("I cannot start\x1b[2K\n")
        sys.exit(7)
    for line in sys.stdin:
        handle(json.loads(line))


if __name__ == "__main__":
    main()
