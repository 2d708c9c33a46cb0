"""Harmless shell scripts, made at random, and the program that runs them and logs what ran.

All commands are stubs that write down their words, or wrappers that start a stub. They are run
in the confinement, with bounds on time, processes and output.
"""

from __future__ import annotations

from random import Random

STUBS = tuple(f"c{number}" for number in range(6))
FAILING = ("d0", "d1")
"""Stubs whose exit code is 1, so that every branch is taken."""
REAL = ("env", "nice", "nohup", "timeout", "xargs", "sh", "bash", "find", "cat", "stdbuf")
DEPTH = 2

_ARGUMENTS = (
    "a", "b", "-x", "--long=v", "'q r'", '"d e"', "x\\ y", "$'t\\tu'", "''", '""', "$v", '"$v"',
    "${v}", "${v:-z}", '"${v:-z w}"', "${#v}", "{a,b}", "x{1,2}y", "{1..3}", "*", "*.no", "[ab]",
    "$((1+2))", "a#b", "=", "a=b", "!", "'$(c0)'", "\\`", "a\\\nb", "%1", "@", "'#'",
)  # fmt: skip
_PIECES = (
    *"();&|<>{}[]$`'\"\\#!=\n\t ,*?~", "&&", "||", ";;", "$(", "${", "$((", "))", "((", "<<E\n",
    "\nE\n", "<<'E'\n", "<(c1)", "a=()", "a=(", "a+=(", "x=", "v=1 ", " c2 ", ";c3;", "\nc4\n",
    "\\\n", "\\", "if ", "then ", "fi", "do ", "done", "case x in ", "esac", "[[ ", " ]]", "f() ",
    "{ ", " }", "function f ", "time ", "! ", "coproc ", "in ", "$'", '$"', "for i ", "select ",
    "until ", "else ", "${v@P}", "a[0]=", "a[", "|&", "&>o", ">|o", "<<<", "2>&1", "<&-",
)  # fmt: skip


class Generator:
    """Makes scripts. The same seed makes the same ones."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def script(self) -> str:
        """A script; two of three are broken here and there."""
        text = self._list(DEPTH)
        for _ in range(self._random.choice((0, 1, 2))):
            text = self._broken(text)
        return text

    def _broken(self, text: str) -> str:
        at = self._random.randrange(len(text) + 1)
        match self._random.randrange(4):
            case 0:
                return text[:at] + text[at + 1 :]
            case 1:
                other = self._random.randrange(len(text) + 1)
                return text[: min(at, other)] + text[max(at, other) :]
            case _:
                return text[:at] + self._random.choice(_PIECES) + text[at:]

    def _list(self, depth: int) -> str:
        choose = self._random.choice
        text = self._pipeline(depth)
        for _ in range(self._random.randrange(2)):
            text += choose((" && ", " || ", "; ", "\n", ";\n", " & ", "&&\n", " ||\n# note\n"))
            text += self._pipeline(depth)
        return text

    def _pipeline(self, depth: int) -> str:
        text = self._random.choice(("", "", "", "! ", "time ")) + self._stage(depth)
        if self._random.random() < 0.2:
            text += self._random.choice((" | ", "|", " |& ", " |\n")) + self._stage(depth)
        return text

    def _stage(self, depth: int) -> str:
        if depth <= 0 or self._random.random() < 0.7:
            return self._command(depth)
        inner = self._list(depth - 1)
        other = self._list(depth - 1)
        return self._random.choice(
            (
                f"({inner})",
                f"( {inner}\n)",
                f"{{ {inner}\n}}",
                f"if {inner}\nthen {other}\nfi",
                f"if d0; then {inner}\nelse {other}\nfi",
                f"if d0; then c0; elif {inner}\nthen {other}\nfi",
                f"for i in 1 2; do {inner}\ndone",
                f"for ((i=0; i<2; i++)); do {inner}\ndone",
                f"while d1; do {inner}\ndone",
                f"until c1; do {inner}\ndone",
                f"while c1; do {inner}\nbreak; done",
                f"case x in a|x) {inner}\n;; *) {other}\n;; esac",
                f"case y in (x) {inner}\n;; (*) {other}\nesac",
                f"f() {{ {inner}\n}}; f",
                f"g() ( {inner}\n) ; g",
                f"function h {{ {inner}\n}}; h",
                f"[[ -n x && $v != y ]] && {{ {inner}\n}}",
                f"((1 + 2)) && ( {inner}\n)",
                f"eval {quoted(inner)}",
                f"bash -c {quoted(inner)}",
                f"sh <<'EOF'\n{inner}\nEOF",
                f"cat <<E\n$({other}\n)\nE",
                f"trap {quoted(inner)} EXIT",
                f"{{ {inner}\n}} > o 2>&1",
            )
        )

    def _command(self, depth: int) -> str:
        choose = self._random.choice
        words = [self._name(), *(self._argument(depth) for _ in range(self._random.randrange(3)))]
        before = choose(("", "", "", "", "v=1 ", "v=$(c5) ", "a=(1 2) ", "v= ", "> o ", "a=()\n"))
        after = choose(
            ("", "", "", "", " > o", " 2>&1", " >> o", " < /dev/null", " # note", "<<<a")
        )
        return before + choose(("", "", "", self._wrapper())) + " ".join(words) + after

    def _name(self) -> str:
        name = self._random.choice((*STUBS, *FAILING))
        return self._random.choice(
            (name, name, name, name, f"'{name}'", f'"{name}"', f"\\{name}", f"{name[0]}''{name[1]}",
             f"$'\\x{ord(name[0]):x}{name[1]}'", f"{name[0]}\\\n{name[1]}", f"{{{name},k}}",
             f"{name[0]}{{0..1}}")
        )  # fmt: skip

    def _wrapper(self) -> str:
        return self._random.choice(
            ("env ", "env - PATH=$PATH ", "env w=1 ", "nice ", "nice -n 1 ", "nohup ", "command ",
             "timeout 5 ", "timeout -k 1 5 ", "exec ", "xargs ", "echo k | xargs ", "eval ",
             "stdbuf -oL ", "builtin command ", "find . -maxdepth 0 -exec ")
        )  # fmt: skip

    def _argument(self, depth: int) -> str:
        if depth <= 0 or self._random.random() < 0.85:
            return self._random.choice(_ARGUMENTS)
        inner = self._list(depth - 1)
        return self._random.choice(
            (f"$({inner}\n)", f'"$({inner}\n)"', f"<({inner}\n)", f"${{v:-$({inner}\n)}}",
             f"$(( $({inner}\n) + 1 ))", "`c2 a`", '"`c3 \\"b\\"`"')
        )  # fmt: skip


def quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


RUNNER = r"""
import ctypes, json, os, resource, shutil, signal, subprocess, threading

top = os.getcwd()
stubs, box, log = (os.path.join(top, name) for name in ("stubs", "box", "log"))
os.makedirs(stubs)
orders = json.load(open("scripts.json"))
for name in orders["stubs"] + orders["failing"]:
    path = os.path.join(stubs, name)
    with open(path, "w") as file:
        code = int(name in orders["failing"])
        file.write(
            "#!/bin/sh\nprintf '%%s\\0' \"${0##*/}\" \"$@\" '\2' >> %s\nexit %d\n" % (log, code)
        )
    os.chmod(path, 0o755)
for name in orders["real"]:
    real = orders["shell"] if name == "sh" else shutil.which(name)
    os.symlink(real, os.path.join(stubs, name))

def bounds():
    resource.setrlimit(resource.RLIMIT_CPU, (2, 2))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

PR_SET_CHILD_SUBREAPER = 36
ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

def end_all():
    # What a script left over must not write to the log of the next one.
    while True:
        path = "/proc/self/task/%d/children" % threading.get_native_id()
        for pid in open(path).read().split():
            os.kill(int(pid), signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return

results = []
for text in orders["scripts"]:
    shutil.rmtree(box, ignore_errors=True)
    os.makedirs(box)
    open(log, "w").close()
    process = subprocess.Popen(
        [orders["shell"], "-c", text],
        cwd=box, env={"PATH": stubs, "FUNCNEST": "4"}, preexec_fn=bounds,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    for _ in range(250):
        try:
            process.wait(timeout=0.02)
            break
        except subprocess.TimeoutExpired:
            # A loop without an end may start more than the confinement allows to all together.
            if sum(name.isdigit() for name in os.listdir("/proc")) > 100:
                break
    end_all()
    words = open(log, encoding="utf-8", errors="surrogateescape").read().split("\0")[:-1]
    ran, one = [], []
    for word in words:
        if word == "\2":
            ran.append(one)
            one = []
        else:
            one.append(word)
    results.append(ran)
json.dump(results, open("results.json", "w"))
"""
"""Runs in the confinement: each script with a stub PATH, and what it ran as lists of words."""
