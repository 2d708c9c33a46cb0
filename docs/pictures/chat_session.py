"""Draws `chat.svg`: a real session of `keryx chat` in tmux, with a scripted model and real tools.

Run `python -m docs.pictures.chat_session` in the root of the repository; it needs tmux.
"""

from __future__ import annotations

import io
import re
import tempfile
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text
from tests.cli.chat.terminal import terminal
from tests.cli.commands import model_server

PICTURE: Final = Path(__file__).with_name("chat.svg")
SIZE: Final = (92, 38)
PATCH: Final = """*** Begin Patch
*** Update File: greeting.py
@@
 def greet(name):
-    return "Hello " + name
+    return f"Hello, {name}!"
*** End Patch
"""
REPLIES: Final = (
    {
        "reasoning": "The file is short.\nOne line has to change.",
        "text": "I change the line and run the tests.",
        "calls": [{"tool": "patch", "arguments": {"patch": PATCH}}],
    },
    {
        "calls": [
            {"tool": "terminal", "arguments": {"command": "python3 -m compileall -q . && echo ok"}},
            {"tool": "terminal", "arguments": {"command": "echo 3 of 12 passed; sleep 60"}},
            {"tool": "terminal", "arguments": {"command": "git push --force origin main"}},
        ],
    },
)


def main() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="keryx-") as name:
        PICTURE.write_text(drawn(capture(Path(name))))


def capture(folder: Path) -> str:
    """Run the session until it waits for an approval, and return the screen with its colours."""
    home, workspace = folder / "home", folder / "greeter"
    workspace.mkdir()
    (workspace / "greeting.py").write_text('def greet(name):\n    return "Hello " + name\n')
    with terminal(home) as window, model_server(home, *REPLIES):
        words = ("chat", "--workspace", str(workspace), "--approve", "auto")
        window.start(*words, size=SIZE)
        window.wait("/help")
        window.send("Greet with an f-string, test it and push it.")
        window.wait("Ctrl+X, then:")
        window.wait("    3 of 12 passed")
        window.send("Then write the change into the changelog.")
        window.wait("Queued 1")
        window.type("and keep it short")
        window.wait("> and keep it short")
        return window.styled


def drawn(screen: str) -> str:
    """Return the captured screen as an SVG picture."""
    console = Console(record=True, width=SIZE[0], file=io.StringIO())
    console.print(Text.from_ansi(screen.rstrip()))
    picture = console.export_svg(title="keryx chat", theme=MONOKAI, unique_id="keryx-chat")
    # A picture that loads nothing: the viewer's own monospaced font takes the place of this one.
    return re.sub(r"\s*@font-face \{.*?\}", "", picture, flags=re.DOTALL)


if __name__ == "__main__":
    main()
