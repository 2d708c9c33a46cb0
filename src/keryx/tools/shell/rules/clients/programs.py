"""Programs with subcommands: package managers, build tools, containers, clusters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from keryx.tools.shell.rules.actions import Action, Argument, Arguments, Level, names, opaque, split
from keryx.tools.shell.rules.running.wrappers import suspects


@dataclass(frozen=True, slots=True)
class Subcommand:
    """The rules of one subcommand."""

    level: Level = "low"
    why: str = ""
    network: bool = False
    risky: Mapping[str, str] = field(default_factory=dict[str, str])
    wraps: bool = False
    """Whether the following words are another command."""
    writing: str = ""
    takes: str = ""
    """Options with a value, before the wrapped command."""


@dataclass(frozen=True, slots=True)
class Program:
    """The rules of a program; a subcommand may be one word or two."""

    subcommands: Mapping[str, Subcommand]
    otherwise: Subcommand = Subcommand()
    takes: str = ""
    """Options with a value, before the subcommand."""
    directories: str = ""
    """Options for the directory in which it runs."""
    looking: str = ""
    """Prefixes of options that make it only read, in place of a subcommand."""


def _table(groups: Mapping[str, Subcommand]) -> dict[str, Subcommand]:
    """Return the rules by name; a name of two words is written with a `+`."""
    return {
        name.replace("+", " "): subcommand
        for text, subcommand in groups.items()
        for name in names(text)
    }


_READS = Subcommand("none")
_QUERIES = Subcommand(why="asks a server", network=True)
_FETCHES = Subcommand(why="installs packages", network=True)
_SYSTEM = Subcommand("high", "installs or removes software for the whole system", network=True)
_USER = Subcommand("high", "installs programs outside of the workspace", network=True)
_PUBLISHES = Subcommand("high", "publishes to the world", network=True)
_ACCOUNT = Subcommand("high", "changes who this user is to a server", network=True)
_RUNS = Subcommand(wraps=True, level="none")
_GLOBAL = {
    "-g": "installs programs outside of the workspace",
    "--global": "installs programs outside of the workspace",
    "--location": "installs programs outside of the workspace",
}
_NODE = {
    "ls list ll root bin prefix why explain": _READS,
    "outdated view info audit fund search ping whoami": _QUERIES,
    "config+get config+list config+ls": _READS,
    "config set": Subcommand("high", "changes settings for this user, not only here"),
    """i install ci add update up upgrade remove rm uninstall un link import dedupe
    prune""": Subcommand(why="installs packages", network=True, risky=_GLOBAL),
    "publish unpublish deprecate owner access dist-tag": _PUBLISHES,
    "login logout adduser token": _ACCOUNT,
    "exec x": Subcommand(
        why="may fetch a package and run it", network=True, wraps=True, takes="-p"
    ),
    "dlx create init": replace(_FETCHES, why="may fetch a package and run it"),
    "global": _USER,
}
_PIP = _table(
    {
        "list show freeze check debug inspect": _READS,
        "install uninstall": Subcommand(
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
        "config": Subcommand(why="changes the settings of pip"),
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
    _table(
        {
            "ps images version info logs inspect stats top port diff history search": Subcommand(
                why="asks the container engine"
            ),
            """image+ls container+ls network+ls volume+ls network+inspect volume+inspect
            image+inspect container+inspect container+logs context+ls compose+ps compose+logs
            compose+config compose+images compose+top compose+ls compose+version system+df
            system+info""": Subcommand(why="asks the container engine"),
            "build pull buildx compose": Subcommand(
                why="builds or fetches containers", network=True
            ),
            "run create": Subcommand(why="starts a container", network=True, risky=_CONTAINER_RUN),
            "exec cp attach commit compose+exec compose+cp compose+run container+exec": Subcommand(
                "high", "acts inside of a running container"
            ),
            """rm rmi kill stop restart prune system+prune volume+rm volume+prune image+prune
            container+prune network+rm image+rm container+rm compose+down""": Subcommand(
                "high", "stops or deletes containers"
            ),
            "push login logout": _PUBLISHES,
        }
    ),
    takes="-H --host --context -c --config -l",
)
_SYSTEM_PACKAGES = Program(
    _table(
        {
            """list show search info policy depends rdepends which files contents query deps
            leaves uses showpkg pkgnames madison whatprovides repolist outdated""": _READS
        }
    ),
    _SYSTEM,
    looking="""-q --query -Q -l -L -s -S -p -c -I --list --listfiles --status --search
    --get-selections --print --contents --info --audit --prefix --cellar --repository --config""",
)
_PACKAGE_QUERIES = Program(_SYSTEM_PACKAGES.subcommands, _READS)
_PLAIN = Program({}, Subcommand())
_BUILD = Program(
    _table({"install uninstall": Subcommand("high", "installs outside of the workspace")}),
    takes="-f -j -l --file --jobs",
    directories="-C --directory",
)

PROGRAMS: Mapping[str, Program] = {
    **dict.fromkeys(
        names("npm pnpm yarn bun"), Program(_table(_NODE), directories="-C --prefix --cwd --dir")
    ),
    **dict.fromkeys(names("pip pipenv"), Program({**_PIP, **_table({"run": _RUNS})})),
    "uv": Program(
        {
            **{f"pip {name}": subcommand for name, subcommand in _PIP.items()},
            **_table(
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
                    "tree version": _READS,
                }
            ),
        },
        takes="--directory --project",
    ),
    "poetry": Program(
        _table({"run": _RUNS, "add install update lock": _FETCHES, "publish": _PUBLISHES})
    ),
    "hatch": Program(_table({"run": _RUNS, "publish": _PUBLISHES})),
    "pdm": Program(_table({"run": _RUNS, "add install update": _FETCHES, "publish": _PUBLISHES})),
    "bundle": Program(_table({"exec": _RUNS, "install update add": _FETCHES})),
    "conda": Program(
        _table(
            {
                "run": replace(_RUNS, takes="-n --name -p --prefix --cwd"),
                "install create update env": _FETCHES,
                "list info env+list config": _READS,
            }
        )
    ),
    "pipx": Program(_table({"run": _FETCHES, "list": _READS}), _USER),
    "gem": Program(
        _table(
            {
                "list which contents env environment info specification help": _READS,
                "search outdated": _QUERIES,
                "push yank": _PUBLISHES,
            }
        ),
        _SYSTEM,
    ),
    **dict.fromkeys(names("mise asdf rtx"), Program(_table({"exec x": _RUNS, "ls list": _READS}))),
    **dict.fromkeys(names("apt-cache dpkg-query pkg-config"), _PACKAGE_QUERIES),
    "composer": Program(
        _table({"install require update": _FETCHES, "global": _USER, "show": _READS})
    ),
    "cargo": Program(
        _table(
            {
                "tree metadata version pkgid locate-project": _READS,
                "add update fetch search vendor": _FETCHES,
                "install uninstall": _USER,
                "publish yank owner": _PUBLISHES,
                "login logout": _ACCOUNT,
            }
        )
    ),
    "go": Program(
        _table(
            {
                "version list doc": _READS,
                "get mod+download mod+tidy mod+vendor work+sync": _FETCHES,
                "install": _USER,
                "env": Subcommand(risky={"-w": "changes go for this user, not only here"}),
            }
        )
    ),
    "rustup": Program(
        _table({"show which toolchain+list target+list component+list": _READS}), _USER
    ),
    "nvm": Program(_table({"ls current which use": Subcommand()}), _USER),
    "twine": Program(_table({"check": _READS}), _PUBLISHES),
    **dict.fromkeys(names("docker podman nerdctl docker-compose"), _CONTAINERS),
    "ansible-playbook": Program({}, Subcommand("high", "changes other machines", network=True)),
    **dict.fromkeys(
        names("""apt apt-get aptitude dnf yum pacman apk zypper snap flatpak emerge brew port
        dpkg rpm nix-env pkg"""),
        _SYSTEM_PACKAGES,
    ),
    "systemctl": Program(
        _table({"status is-active is-enabled list-units show cat list-timers": Subcommand()}),
        Subcommand("high", "controls the services of this machine"),
    ),
    "journalctl": Program({}, Subcommand(why="reads the logs of this machine")),
    **dict.fromkeys(names("make gmake ninja just"), _BUILD),
    "cmake": Program({}, Subcommand(risky={"--install": "installs outside of the workspace"})),
    **dict.fromkeys(
        names("""pytest tox nox ruff mypy black gcc g++ clang cc c++ javac java mvn gradle tsc
        eslint prettier jest vitest gradlew rustc dotnet swift bazel"""),
        _PLAIN,
    ),
}


def program(name: str, arguments: Arguments) -> Action:
    """Return the action of a program of the table, by its subcommand."""
    rules = PROGRAMS[name]
    directories = names(rules.directories)
    outer = split(arguments, names(rules.takes) | directories, until_operand=True)
    words = [argument.text for argument in outer.operands[:2]]
    if outer.operands and not outer.operands[0].is_literal:
        return opaque(f"runs a `{name}` command that only the shell knows")
    two, single = " ".join(words), "".join(words[:1])
    subcommand = rules.subcommands.get(two) or rules.subcommands.get(single) or rules.otherwise
    if rules.looking and arguments and arguments[0].text.startswith(tuple(names(rules.looking))):
        subcommand = _READS
    inner = outer.operands[2 if two in rules.subcommands else 1 :]
    if subcommand.wraps and inner:
        command = split(inner, names(subcommand.takes), until_operand=True).operands
        return Action(
            network=subcommand.network,
            commands=(command,) if command else (),
            doubtful=suspects(inner, command),
            plain=(Argument(name), *outer.operands),
        )
    parts = split(arguments, names(subcommand.writing) | names(rules.takes) | directories)
    directory = parts.values(directories)
    level, why = subcommand.level, subcommand.why or f"runs `{' '.join([name, *words[:1]])}`"
    for option, reason in subcommand.risky.items():
        if parts.has(option):
            level, why = "high", reason
    return Action(
        level,
        "" if level == "none" else why,
        changes=level != "none" and subcommand is not _QUERIES,
        network=subcommand.network,
        writes=parts.values(names(subcommand.writing)),
        directory=directory[-1] if directory else None,
        pattern=_pattern(name, rules, words),
        plain=(Argument(name), *outer.operands) if rules.subcommands else (),
        doubtful=suspects(arguments),
    )


def _pattern(name: str, rules: Program, words: list[str]) -> str:
    if not rules.subcommands:
        return name
    words = [word for word in words if not word.startswith("-")]
    # `run` is followed by the name of a script; elsewhere two words may be one subcommand.
    count = 2 if words[:1] == ["run"] or " ".join(words) in rules.subcommands else 1
    return " ".join([name, *words[:count]])
