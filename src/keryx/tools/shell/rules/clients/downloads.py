"""`curl` and `wget`: what they fetch, what they send, and where the answer goes."""

from __future__ import annotations

from dataclasses import replace
from posixpath import basename
from urllib.parse import urlsplit

from keryx.tools.shell.rules.actions import Action, Argument, Arguments, Split, names, split
from keryx.tools.shell.rules.clients.addresses import hosts_in

_CURL_TAKES = names(
    """-A -b -c -C -d -D -e -E -F -H -K -m -o -P -Q -r -T -u -U -w -x -X -y -Y -z --data
    --data-raw --data-binary --data-urlencode --form --header --output --request --user
    --user-agent --max-time --connect-timeout --retry --retry-delay --cookie --cookie-jar
    --upload-file --url --proxy --cacert --cert --key --write-out --output-dir --json
    --resolve --referer --range --limit-rate --config --dump-header --trace --trace-ascii
    --unix-socket --form-string --interface"""
)
_SENDING = names(
    "-d --data --data-raw --data-binary --data-urlencode -F --form -T --upload-file --json"
)
_WGET_TAKES = names(
    """-O -o -a -P -i -e -U -t -T -w -Q -l -A -R -D -X -I --output-document --output-file
    --append-output --directory-prefix --input-file --execute --header --user --password
    --user-agent --tries --timeout --post-data --post-file --body-data --body-file --method
    --load-cookies --save-cookies --limit-rate --level --accept --reject --domains"""
)
_STDOUT = ("-", "/dev/stdout")


def curl(arguments: Arguments) -> Action:
    """`curl` prints the answer, or saves it with an option."""
    parts = split(arguments, _CURL_TAKES)
    urls = (*parts.operands, *parts.values(("--url",)))
    saved = _without_stdout(parts.values(("-o", "--output")))
    if parts.has("-O", "--remote-name"):
        saved = (*saved, *(_file_name_of(url) for url in urls))
    directory = parts.values(("--output-dir",))
    if directory and saved:
        saved = tuple(_join(directory[0], argument) for argument in saved)
    logs = parts.values(names("-D --dump-header -c --cookie-jar --trace --trace-ascii"))
    data = parts.values(_SENDING)
    action = _fetch("curl", parts, urls, saved, sends=bool(data) or _sends_by_method(parts))
    sockets = parts.values(("--unix-socket",))
    if sockets:
        action = replace(action, level="high", why="talks to a program through its socket")
    return replace(
        action, writes=(*saved, *_without_stdout(logs)), reads=(*_files(data), *_files_read(parts))
    )


def wget(arguments: Arguments) -> Action:
    """`wget` saves the answer, under the name in the address."""
    parts = split(arguments, _WGET_TAKES)
    outputs = parts.values(("-O", "--output-document"))
    saved = _without_stdout(outputs)
    if not outputs and not parts.has("--spider"):
        directory = (*parts.values(("-P", "--directory-prefix")), Argument("."))[0]
        saved = tuple(_join(directory, _file_name_of(url)) for url in parts.operands)
    logs = parts.values(names("-o -a --output-file --append-output --save-cookies"))
    files = parts.values(names("-i --input-file --post-file --body-file --load-cookies"))
    sends = parts.has("--post-data", "--post-file", "--body-data", "--body-file", "--method")
    action = _fetch("wget", parts, parts.operands, saved, sends=sends)
    if parts.has("-e", "--execute", "--use-askpass"):
        action = replace(action, level="high", why="starts a program or changes its settings")
    return replace(action, writes=(*saved, *_without_stdout(logs)), reads=files)


def _fetch(name: str, parts: Split, urls: Arguments, files: Arguments, *, sends: bool) -> Action:
    hosts = hosts_in(urls, bare=True)
    complete = len(hosts) > 0 and all(argument.is_literal for argument in urls)
    # A proxy sees all data, whatever the address is.
    proxies = hosts_in(parts.values(("-x", "--proxy")), bare=True)
    hosts_text = f" {', '.join(hosts)}" if hosts else " a host"
    return Action(
        "low",
        f"sends data to{hosts_text}" if sends else f"fetches from{hosts_text}",
        changes=sends,
        network=True,
        hosts=(*hosts, *proxies) if complete else (),
        downloads=files,
        pattern=" ".join((name, *hosts)) if complete else None,
    )


def _sends_by_method(parts: Split) -> bool:
    methods = {argument.text.upper() for argument in parts.values(("-X", "--request"))}
    return bool(methods - {"GET", "HEAD"})


def _files_read(parts: Split) -> Arguments:
    files = names("-K --config -E --cert --key --cacert -T --upload-file")
    return _without_stdout(parts.values(files))


def _without_stdout(files: Arguments) -> Arguments:
    return tuple(argument for argument in files if argument.text not in _STDOUT)


def _file_name_of(url: Argument) -> Argument:
    """Return the file in which an address is saved by its own name."""
    try:
        path = urlsplit(url.text if "://" in url.text else f"//{url.text}").path
    except ValueError:
        return Argument(url.text, is_literal=False)
    return Argument(basename(path) or "index.html", url.is_literal)


def _join(directory: Argument, file: Argument) -> Argument:
    return Argument(f"{directory.text}/{file.text}", directory.is_literal and file.is_literal)


def _files(data: Arguments) -> Arguments:
    """Return the files that are sent: `@file`, `name=@file`, or the file to upload."""
    files = tuple(
        argument.after(argument.text.index("@") + 1) for argument in data if "@" in argument.text
    )
    return tuple(argument for argument in files if argument.text != "-")
