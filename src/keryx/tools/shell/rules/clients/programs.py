"""Programs with subcommands: package managers, build tools, containers, clusters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from keryx.tools.shell.rules.deeds import Argument, Arguments, Deed, Level, names, opaque, split


@dataclass(frozen=True, slots=True)
class Act:
    """What is known of one subcommand."""

    level: Level = "low"
    why: str = ""
    network: bool = False
    risky: Mapping[str, str] = field(default_factory=dict[str, str])
    wraps: bool = False
    """Whether the words that follow are a command of their own."""
    writing: str = ""


@dataclass(frozen=True, slots=True)
class Program:
    """What is known of a program; a subcommand may be one word or two."""

    acts: Mapping[str, Act]
    otherwise: Act = Act()
    takes: str = ""
    """Options before the subcommand that a value follows."""
    directories: str = ""
    """Options that name where it runs."""


def _acts(groups: Mapping[str, Act]) -> dict[str, Act]:
    """Spread groups over their names; a name of two words is written with a `+`."""
    return {name.replace("+", " "): act for text, act in groups.items() for name in names(text)}


_LOOKS = Act("none")
_ASKS = Act(why="asks a server", network=True)
_FETCHES = Act(why="installs packages", network=True)
_SYSTEM = Act("high", "installs or removes software for the whole system", network=True)
_USER = Act("high", "installs programs outside of the workspace", network=True)
_PUBLISHES = Act("high", "publishes to the world", network=True)
_ACCOUNT = Act("high", "changes who this user is to a server", network=True)
_RUNS = Act(wraps=True, level="none")
_GLOBAL = {
    "-g": "installs programs outside of the workspace",
    "--global": "installs programs outside of the workspace",
    "--location": "installs programs outside of the workspace",
}
_NODE = {
    "ls list ll outdated view info why explain root bin prefix audit fund": _LOOKS,
    "i install ci add update up upgrade remove rm uninstall un link import dedupe prune": Act(
        why="installs packages", network=True, risky=_GLOBAL
    ),
    "publish unpublish deprecate owner access dist-tag": _PUBLISHES,
    "login logout adduser token": _ACCOUNT,
    "exec x dlx create init": replace(_FETCHES, why="may fetch a package and run it"),
    "global": _USER,
}
_PIP = _acts(
    {
        "list show freeze check debug inspect": _LOOKS,
        "install uninstall": Act(
            why="installs packages",
            network=True,
            risky={
                "--user": "installs packages outside of the workspace",
                "--break-system-packages": "installs packages for the whole system",
                "--root": "installs packages for the whole system",
            },
            writing="-t --target --prefix",
        ),
        "download wheel index search": _FETCHES,
        "config": Act(why="changes the settings of pip"),
    }
)
_CONTAINER_RUN = dict.fromkeys(
    names(
        """-v --volume --mount --privileged --pid --net --network --device --cap-add --ipc
        --userns --security-opt --volumes-from"""
    ),
    "gives a container a part of this machine",
)
_CONTAINERS = Program(
    _acts(
        {
            "ps images version info logs inspect stats top port diff history search": Act(
                why="asks the container engine"
            ),
            "build pull buildx compose": Act(why="builds or fetches containers", network=True),
            "run create": Act(why="starts a container", network=True, risky=_CONTAINER_RUN),
            "exec cp attach commit": Act("high", "acts inside of a running container"),
            """rm rmi kill stop restart prune system+prune volume+rm volume+prune image+prune
            container+prune network+rm image+rm container+rm compose+down""": Act(
                "high", "stops or deletes containers"
            ),
            "push login logout": _PUBLISHES,
        }
    ),
    takes="-H --host --context -c --config -l",
)
_SYSTEM_PACKAGES = Program(
    _acts({"list show search info policy depends which files contents query": _ASKS}), _SYSTEM
)
_PLAIN = Program({}, Act())
_BUILD = Program(
    _acts({"install uninstall": Act("high", "installs outside of the workspace")}),
    takes="-f -j -l --file --jobs",
    directories="-C --directory",
)

PROGRAMS: Mapping[str, Program] = {
    **dict.fromkeys(names("npm pnpm yarn bun"), Program(_acts(_NODE), takes="-C --prefix")),
    **dict.fromkeys(names("pip pipenv"), Program({**_PIP, **_acts({"run": _RUNS})})),
    "uv": Program(
        {
            **{f"pip {name}": act for name, act in _PIP.items()},
            **_acts(
                {
                    "run": _RUNS,
                    "add remove sync lock venv init python build export": _FETCHES,
                    "tool": replace(_FETCHES, why="may fetch a package and run it"),
                    "tool+install tool+uninstall tool+upgrade self": _USER,
                    "publish": _PUBLISHES,
                    "tree version": _LOOKS,
                }
            ),
        },
        takes="--directory --project",
    ),
    "poetry": Program(
        _acts({"run": _RUNS, "add install update lock": _FETCHES, "publish": _PUBLISHES})
    ),
    "hatch": Program(_acts({"run": _RUNS, "publish": _PUBLISHES})),
    "pdm": Program(_acts({"run": _RUNS, "add install update": _FETCHES, "publish": _PUBLISHES})),
    "bundle": Program(_acts({"exec": _RUNS, "install update add": _FETCHES})),
    "conda": Program(
        _acts({"run": Act(), "install create update env": _FETCHES, "list info": _LOOKS})
    ),
    "pipx": Program(_acts({"run": _FETCHES, "list": _LOOKS}), _USER),
    "gem": Program(_acts({"list which contents": _LOOKS, "push yank": _PUBLISHES}), _SYSTEM),
    "composer": Program(
        _acts({"install require update": _FETCHES, "global": _USER, "show": _LOOKS})
    ),
    "cargo": Program(
        _acts(
            {
                "tree metadata version pkgid locate-project": _LOOKS,
                "add update fetch search vendor": _FETCHES,
                "install uninstall": _USER,
                "publish yank owner": _PUBLISHES,
                "login logout": _ACCOUNT,
            }
        )
    ),
    "go": Program(
        _acts(
            {
                "version list doc": _LOOKS,
                "get mod+download mod+tidy mod+vendor work+sync": _FETCHES,
                "install": _USER,
                "env": Act(risky={"-w": "changes go for this user, not only here"}),
            }
        )
    ),
    "rustup": Program(_acts({"show which": _LOOKS}), _USER),
    "nvm": Program(_acts({"ls current which use": Act()}), _USER),
    "twine": Program(_acts({"check": _LOOKS}), _PUBLISHES),
    "gh": Program(
        _acts(
            {
                """pr+view pr+list pr+diff pr+checks pr+status issue+view issue+list run+view
                run+list repo+view release+view release+list search status""": _ASKS,
                "auth secret ssh-key gpg-key": _ACCOUNT,
                "repo+clone pr+checkout": Act(why="fetches a repository", network=True),
            }
        ),
        Act("high", "acts in this user's name on a server", network=True),
        takes="-R --repo",
    ),
    **dict.fromkeys(names("docker podman nerdctl docker-compose"), _CONTAINERS),
    "kubectl": Program(
        _acts({"get describe logs version explain top api-resources cluster-info": _ASKS}),
        Act("high", "changes a cluster", network=True),
        takes="-n --namespace --context --kubeconfig",
    ),
    "helm": Program(
        _acts({"list template lint show search status version": _ASKS}),
        Act("high", "changes a cluster", network=True),
    ),
    **dict.fromkeys(
        names("terraform tofu pulumi"),
        Program(
            _acts({"fmt validate version": Act(), "plan init show output preview": _ASKS}),
            Act("high", "changes what runs in the cloud", network=True),
        ),
    ),
    "ansible-playbook": Program({}, Act("high", "changes other machines", network=True)),
    **dict.fromkeys(
        names("""apt apt-get aptitude dnf yum pacman apk zypper snap flatpak emerge brew port
        dpkg rpm nix-env pkg"""),
        _SYSTEM_PACKAGES,
    ),
    "systemctl": Program(
        _acts({"status is-active is-enabled list-units show cat list-timers": Act()}),
        Act("high", "controls the services of this machine"),
    ),
    "journalctl": Program({}, Act(why="reads the logs of this machine")),
    **dict.fromkeys(names("make gmake ninja just"), _BUILD),
    "cmake": Program({}, Act(risky={"--install": "installs outside of the workspace"})),
    **dict.fromkeys(
        names("""pytest tox nox ruff mypy black gcc g++ clang cc c++ javac java mvn gradle tsc
        eslint prettier jest vitest gradlew rustc dotnet swift bazel"""),
        _PLAIN,
    ),
}

_SQL = names("drop truncate delete alter")
CLIENTS = names("psql mysql mariadb sqlite3 redis-cli mongo mongosh flushall")


def program(name: str, arguments: Arguments) -> Deed:
    """What a program of the table does with its subcommand."""
    known = PROGRAMS[name]
    directories = names(known.directories)
    outer = split(arguments, names(known.takes) | directories, until_operand=True)
    words = [one.text for one in outer.operands[:2]]
    if outer.operands and not outer.operands[0].known:
        return opaque(f"runs a `{name}` command that only the shell knows")
    two, one = " ".join(words), "".join(words[:1])
    act = known.acts.get(two) or known.acts.get(one) or known.otherwise
    inner = outer.operands[2 if two in known.acts else 1 :]
    if act.wraps and inner:
        rest = split(inner, until_operand=True).operands
        return Deed(commands=(rest,) if rest else (), plain=(Argument(name), *outer.operands))
    parts = split(arguments, names(act.writing) | names(known.takes) | directories)
    directory = parts.values(directories)
    level, why = act.level, act.why or f"runs `{' '.join([name, *words[:1]])}`"
    for option, reason in act.risky.items():
        if parts.has(option):
            level, why = "high", reason
    return Deed(
        level,
        "" if level == "none" else why,
        changes=level != "none" and act is not _ASKS,
        network=act.network,
        writes=parts.values(names(act.writing)),
        directory=directory[-1] if directory else None,
        pattern=_pattern(name, known, words),
        plain=(Argument(name), *outer.operands) if known.acts else (),
    )


def _pattern(name: str, known: Program, words: list[str]) -> str:
    if not known.acts:
        return name
    words = [word for word in words if not word.startswith("-")]
    # Words of a script's own follow `run`; two words are one subcommand elsewhere.
    count = 2 if words[:1] == ["run"] or " ".join(words) in known.acts else 1
    return " ".join([name, *words[:count]])


def client(name: str, arguments: Arguments) -> Deed:
    """A client of a database: what it is told may delete what no folder holds."""
    said = {word.strip(";\"'()").lower() for one in arguments for word in one.text.split()}
    lost = said & (_SQL | {"flushall", "flushdb", "dropdatabase"})
    level: Level = "high" if lost or any(not one.known for one in arguments) else "low"
    why = "changes or deletes data" if lost else f"works on a database with {name}"
    return Deed(level, why, changes=True, network=name != "sqlite3", pattern=name)
