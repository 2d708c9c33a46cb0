"""Tools that act on an account or a cluster: reading asks for the network, all else for consent."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from keryx.tools.shell.rules.actions import Action, Argument, Arguments, high, names, split
from keryx.tools.shell.rules.running.wrappers import suspects

_READING = (
    r"list|ls|show|get|describe|status|info|version|view|logs?|tail|history|diff|inspect|help"
)
_DEPTH = 4
"""Words that a verb may stand behind: `gcloud compute instances list`."""


@dataclass(frozen=True, slots=True)
class Service:
    """What is known of one tool."""

    why: str
    reading: str = _READING
    """Verbs that only read, as a pattern."""
    guarded: str = "(?!)"
    """What shows keys or passwords, as a pattern of all words before the first option."""
    takes: str = ""
    local: str = "(?!)"
    """What needs no network, as a pattern of all words."""
    sending: str = ""
    """Options that make a reading verb send something."""
    first: bool = False
    """Whether the verb is the first word."""


_ACCOUNT = "acts on an account in the cloud"
_CLUSTER = "changes a cluster"
_STACKS = "changes what runs in the cloud"
_KEYS = "shows keys or passwords"
_AWS_READS = (
    r"(?:describe|list|get|head|lookup|search|batch-get|filter|view|estimate)-[\w-]+|ls|tail|wait"
)

SERVICES: Mapping[str, Service] = {
    "aws": Service(
        _ACCOUNT,
        reading=_AWS_READS + r"|scan|query|presign|list",
        guarded=r"secretsmanager (?:get|batch-get)|ssm get-parameter|\S+ get-\S*(?:token|password"
        r"|credentials|login|secret)|kms decrypt|iam create|configure (?:get|export)",
        takes="--profile --region --output --query --endpoint-url --color",
        local=r"configure list",
    ),
    "gcloud": Service(
        _ACCOUNT,
        reading=_READING + r"|read|get-[\w-]+|list-[\w-]+|search|check|lookup",
        guarded=r"auth (?:print|application-default)|.*\baccess\b|.*get-credentials|.*keys",
        takes="--project --account --format --filter --region --zone --configuration",
        local=r"(?:config|info|version|components)\b",
    ),
    "az": Service(
        _ACCOUNT,
        reading=_READING + r"|list-[\w-]+|show-[\w-]+|exists|check-[\w-]+",
        guarded=r".*(?:access-token|keyvault secret|keys|credential|connection-string)",
        takes="--subscription -o --output --query",
    ),
    **dict.fromkeys(
        names(
            "gsutil doctl heroku flyctl fly vercel netlify linode-cli hcloud scw wrangler railway"
        ),
        Service(
            _ACCOUNT,
            reading=_READING + r"|ps|apps|whoami|stat|du|hash|releases|list-[\w-]+|addons",
            guarded=r".*(?:auth|token|secret|config|env|key|ssh)",
            takes="-a --app -t --access-token -c --context -o --output",
        ),
    ),
    "kubectl": Service(
        _CLUSTER,
        reading=r"get|describe|logs|version|explain|top|api-resources|api-versions|cluster-info"
        r"|diff|events|wait|config (?:view|current-context|get-\w+)|auth (?:can-i|whoami)"
        r"|rollout (?:status|history)|kustomize|completion",
        guarded=r"config view.*raw",
        takes="-n --namespace --context --kubeconfig -s --server --cluster --user",
        local=r"config |explain|completion|kustomize",
        first=True,
    ),
    "helm": Service(
        _CLUSTER,
        reading=r"list|ls|template|lint|show|search|status|version|get|history|env|verify|repo list"
        r"|dependency list|plugin list",
        takes="-n --namespace --kube-context --kubeconfig",
        local=r"template|lint|version|env",
        first=True,
    ),
    **dict.fromkeys(
        names("terraform tofu pulumi terragrunt"),
        Service(
            _STACKS,
            reading=r"plan|init|show|output|preview|graph|providers|version|validate|fmt|get|about"
            r"|state (?:list|show|pull)|workspace (?:list|show)|stack(?: ls)?|config|logs|metadata",
            local=r"fmt|validate|version|graph|workspace (?:list|show)",
            first=True,
        ),
    ),
    **dict.fromkeys(
        names("gh glab"),
        Service(
            "acts in this user's name on a server",
            reading=_READING + r"|checks|watch|search|api|clone|checkout|download|browse",
            guarded=r"auth token|secret|ssh-key|gpg-key|variable",
            takes="-R --repo --hostname",
            sending="-X --method -f --raw-field -F --field --input --show-token -t",
        ),
    ),
}


def service(name: str, arguments: Arguments) -> Action:
    """What a tool does with an account, by its verb."""
    tool = SERVICES[name]
    parts = split(arguments, names(tool.takes), until_operand=True)
    if any(not one.known for one in parts.operands[:1]):
        return replace(high(tool.why), network=True, opaque=True)
    words = _words(parts.operands)
    text = " ".join(words)
    plain = (Argument(name), *parts.operands)
    # `gh alias set` and the like keep a command for later.
    pattern = " ".join([name, *words[:2]])
    deed = Action(network=not re.match(tool.local, text), pattern=pattern, plain=plain)
    deed = replace(deed, doubtful=suspects(arguments))
    if re.match(tool.guarded, text):
        return replace(deed, level="high", why=_KEYS)
    sends = any(one.text.startswith(tuple(names(tool.sending))) for one in arguments)
    if not words or (_reads(tool, words, text) and not (tool.sending and sends)):
        return replace(deed, level="low", why="asks a server") if deed.network else deed
    return replace(deed, level="high", why=tool.why, changes=True)


def _words(operands: Arguments) -> list[str]:
    """The words of the subcommand: those before the first option."""
    words: list[str] = []
    for operand in operands:
        if operand.text.startswith("-") or not operand.known:
            break
        words.append(operand.text)
    return words


def _reads(tool: Service, words: list[str], text: str) -> bool:
    if tool.first:
        return re.match(rf"(?:{tool.reading})(?: |$)", text) is not None
    return any(re.fullmatch(tool.reading, word) for word in words[:_DEPTH])
