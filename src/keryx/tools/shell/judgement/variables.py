"""Variables that change what programs do: they name commands, load code, or say where to look."""

from __future__ import annotations

import re

from keryx.tools.shell.rules.actions import Argument, Level, names

SECRET_VARIABLE = re.compile(
    r"(?i).*(?:SECRET|TOKEN|PASSWORD|PASSWD|API_?KEY|CREDENTIAL|PRIVATE_?KEY|ACCESS_?KEY)"
)
_COMMANDS = re.compile(
    r"""(?x) (?:\w+_)?(?:PAGER|EDITOR|VISUAL|BROWSER|ASKPASS) | MANPAGER | GIT_SSH(?:_COMMAND)?
    | GIT_EXTERNAL_DIFF | GIT_PROXY_COMMAND | PROMPT_COMMAND | RSYNC_RSH | CVS_RSH | SVN_SSH
    | (?:RUSTC|CC|CXX)(?:_WORKSPACE)?_WRAPPER | CC | CXX | LD | AR | SHELL"""
)
"""Their values are run as commands."""
_LOADERS = re.compile(
    r"""(?x) LD_PRELOAD | LD_AUDIT | DYLD_.* | BASH_ENV | PS4 | GIT_CONFIG.* | GIT_EXEC_PATH
    | GIT_TEMPLATE_DIR | PERL5OPT | PERL5DB | RUBYOPT | LUA_INIT.* | GCONV_PATH | BASH_FUNC_.*
    | _?JAVA(?:_TOOL)?_OPTIONS | JDK_JAVA_OPTIONS | PYTHONBREAKPOINT | TAR_OPTIONS | ZIPOPT
    | UNZIP(?:OPT)? | GREP_OPTIONS | RIPGREP_CONFIG_PATH | LESSOPEN | LESSCLOSE | LESSKEY.* | MANOPT
    | (?:GNU)?MAKEFLAGS | MAKEFILES | CARGO_\w*(?:RUNNER|LINKER|RUSTC.*|CREDENTIAL_PROVIDER)
    | (?i:npm_config_)(?:script_shell|shell|git|node_gyp|userconfig|globalconfig)
    | ANSIBLE_(?:CONFIG|LIBRARY) | EXINIT | VIMINIT | SSH_ASKPASS_REQUIRE"""
)
"""They make programs load other code, or take options that a line does not show."""
_OPTIONS = re.compile(
    r".*(?:-exec|-toolexec|-vettool|--require|-r |--import|--loader|-C linker|\+.*!)"
)
_WITH_OPTIONS = names("LESS NODE_OPTIONS GOFLAGS RUSTFLAGS CFLAGS LDFLAGS MAVEN_OPTS GRADLE_OPTS")
_SEARCHED = names(
    """PATH LD_LIBRARY_PATH PYTHONPATH PYTHONSTARTUP PYTHONHOME NODE_OPTIONS NODE_PATH PERL5LIB
    RUBYLIB GIT_DIR GIT_WORK_TREE CLASSPATH GOFLAGS"""
)


def is_command(name: str) -> bool:
    """Whether programs run the value of the variable."""
    return _COMMANDS.fullmatch(name) is not None


def weight(name: str, value: Argument) -> tuple[Level, str]:
    """How much a variable with this value may do, and why."""
    loads = name in _WITH_OPTIONS and (not value.known or _OPTIONS.match(value.text))
    # Shells run that file when they start for a person.
    loads = loads or (name == "ENV" and "/" in value.text)
    if _LOADERS.fullmatch(name) or loads:
        return "high", f"loads other code into programs: {name}"
    if name in _SEARCHED:
        # `read PATH` and the like: nobody sees what it becomes.
        level: Level = "low" if value.known or value.text else "high"
        return level, f"changes where programs look for others: {name}"
    return "none", ""
