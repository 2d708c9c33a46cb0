"""Programs with subcommands: package managers, build tools, containers, clusters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from keryx.tools.shell.rules.actions import Action, Argument, Arguments, Level, names, opaque, split
from keryx.tools.shell.rules.running.wrappers import suspects


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
    takes: str = ""
    """Options before the command that it wraps which a value follows."""


@dataclass(frozen=True, slots=True)
class Program:
    """What is known of a program; a subcommand may be one word or two."""

    acts: Mapping[str, Act]
    otherwise: Act = Act()
    takes: str = ""
    """Options before the subcommand that a value follows."""
    directories: str = ""
    """Options that name where it runs."""
    looking: str = ""
    """How options begin that make it only look, where they stand for a subcommand."""


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
    "ls list ll root bin prefix why explain": _LOOKS,
    "outdated view info audit fund search ping whoami": _ASKS,
    "config+get config+list config+ls": _LOOKS,
    "config set": Act("high", "changes settings for this user, not only here"),
    "i install ci add update up upgrade remove rm uninstall un link import dedupe prune": Act(
        why="installs packages", network=True, risky=_GLOBAL
    ),
    "publish unpublish deprecate owner access dist-tag": _PUBLISHES,
    "login logout adduser token": _ACCOUNT,
    "exec x": Act(why="may fetch a package and run it", network=True, wraps=True, takes="-p"),
    "dlx create init": replace(_FETCHES, why="may fetch a package and run it"),
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
            """image+ls container+ls network+ls volume+ls network+inspect volume+inspect
            image+inspect container+inspect container+logs context+ls compose+ps compose+logs
            compose+config compose+images compose+top compose+ls compose+version system+df
            system+info""": Act(why="asks the container engine"),
            "build pull buildx compose": Act(why="builds or fetches containers", network=True),
            "run create": Act(why="starts a container", network=True, risky=_CONTAINER_RUN),
            "exec cp attach commit compose+exec compose+cp compose+run container+exec": Act(
                "high", "acts inside of a running container"
            ),
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
    _acts(
        {
            """list show search info policy depends rdepends which files contents query deps
            leaves uses showpkg pkgnames madison whatprovides repolist outdated""": _LOOKS
        }
    ),
    _SYSTEM,
    looking="""-q --query -Q -l -L -s -S -p -c -I --list --listfiles --status --search
    --get-selections --print --contents --info --audit --prefix --cellar --repository --config""",
)
_PACKAGE_QUERIES = Program(_SYSTEM_PACKAGES.acts, _LOOKS)
_PLAIN = Program({}, Act())
_BUILD = Program(
    _acts({"install uninstall": Act("high", "installs outside of the workspace")}),
    takes="-f -j -l --file --jobs",
    directories="-C --directory",
)

PROGRAMS: Mapping[str, Program] = {
    **dict.fromkeys(
        names("npm pnpm yarn bun"), Program(_acts(_NODE), directories="-C --prefix --cwd --dir")
    ),
    **dict.fromkeys(names("pip pipenv"), Program({**_PIP, **_acts({"run": _RUNS})})),
    "uv": Program(
        {
            **{f"pip {name}": act for name, act in _PIP.items()},
            **_acts(
                {
                    "run": replace(
                        _RUNS,
                        takes="""--with --with-editable --with-requirements -p --python --extra
                        --group --env-file --index --package --directory --project -m""",
                    ),
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
        _acts(
            {
                "run": replace(_RUNS, takes="-n --name -p --prefix --cwd"),
                "install create update env": _FETCHES,
                "list info env+list config": _LOOKS,
            }
        )
    ),
    "pipx": Program(_acts({"run": _FETCHES, "list": _LOOKS}), _USER),
    "gem": Program(
        _acts(
            {
                "list which contents env environment info specification help": _LOOKS,
                "search outdated": _ASKS,
                "push yank": _PUBLISHES,
            }
        ),
        _SYSTEM,
    ),
    **dict.fromkeys(names("mise asdf rtx"), Program(_acts({"exec x": _RUNS, "ls list": _LOOKS}))),
    **dict.fromkeys(names("apt-cache dpkg-query pkg-config"), _PACKAGE_QUERIES),
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
    "rustup": Program(
        _acts({"show which toolchain+list target+list component+list": _LOOKS}), _USER
    ),
    "nvm": Program(_acts({"ls current which use": Act()}), _USER),
    "twine": Program(_acts({"check": _LOOKS}), _PUBLISHES),
    **dict.fromkeys(names("docker podman nerdctl docker-compose"), _CONTAINERS),
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


def program(name: str, arguments: Arguments) -> Action:
    """What a program of the table does with its subcommand."""
    known = PROGRAMS[name]
    directories = names(known.directories)
    outer = split(arguments, names(known.takes) | directories, until_operand=True)
    words = [one.text for one in outer.operands[:2]]
    if outer.operands and not outer.operands[0].known:
        return opaque(f"runs a `{name}` command that only the shell knows")
    two, one = " ".join(words), "".join(words[:1])
    act = known.acts.get(two) or known.acts.get(one) or known.otherwise
    if known.looking and arguments and arguments[0].text.startswith(tuple(names(known.looking))):
        act = _LOOKS
    inner = outer.operands[2 if two in known.acts else 1 :]
    if act.wraps and inner:
        rest = split(inner, names(act.takes), until_operand=True).operands
        return Action(
            network=act.network,
            commands=(rest,) if rest else (),
            doubtful=suspects(inner, rest),
            plain=(Argument(name), *outer.operands),
        )
    parts = split(arguments, names(act.writing) | names(known.takes) | directories)
    directory = parts.values(directories)
    level, why = act.level, act.why or f"runs `{' '.join([name, *words[:1]])}`"
    for option, reason in act.risky.items():
        if parts.has(option):
            level, why = "high", reason
    return Action(
        level,
        "" if level == "none" else why,
        changes=level != "none" and act is not _ASKS,
        network=act.network,
        writes=parts.values(names(act.writing)),
        directory=directory[-1] if directory else None,
        pattern=_pattern(name, known, words),
        plain=(Argument(name), *outer.operands) if known.acts else (),
        doubtful=suspects(arguments),
    )


def _pattern(name: str, known: Program, words: list[str]) -> str:
    if not known.acts:
        return name
    words = [word for word in words if not word.startswith("-")]
    # Words of a script's own follow `run`; two words are one subcommand elsewhere.
    count = 2 if words[:1] == ["run"] or " ".join(words) in known.acts else 1
    return " ".join([name, *words[:count]])
