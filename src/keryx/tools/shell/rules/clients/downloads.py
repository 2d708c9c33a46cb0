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
    """`curl`: prints what it gets, unless it is told to keep it."""
    parts = split(arguments, _CURL_TAKES)
    urls = (*parts.operands, *parts.values(("--url",)))
    kept = _kept(parts.values(("-o", "--output")))
    if parts.has("-O", "--remote-name"):
        kept = (*kept, *(_named(url) for url in urls))
    directory = parts.values(("--output-dir",))
    if directory and kept:
        kept = tuple(_below(directory[0], one) for one in kept)
    logs = parts.values(names("-D --dump-header -c --cookie-jar --trace --trace-ascii"))
    sent = parts.values(_SENDING)
    deed = _fetch("curl", parts, urls, kept, sends=bool(sent) or _method(parts))
    sockets = parts.values(("--unix-socket",))
    if sockets:
        deed = replace(deed, level="high", why="talks to a program through its socket")
    return replace(deed, writes=(*kept, *_kept(logs)), reads=(*_files(sent), *_read(parts)))


def wget(arguments: Arguments) -> Action:
    """`wget`: keeps what it gets, under the address's own name."""
    parts = split(arguments, _WGET_TAKES)
    outputs = parts.values(("-O", "--output-document"))
    kept = _kept(outputs)
    if not outputs and not parts.has("--spider"):
        directory = (*parts.values(("-P", "--directory-prefix")), Argument("."))[0]
        kept = tuple(_below(directory, _named(url)) for url in parts.operands)
    logs = parts.values(names("-o -a --output-file --append-output --save-cookies"))
    files = parts.values(names("-i --input-file --post-file --body-file --load-cookies"))
    sends = parts.has("--post-data", "--post-file", "--body-data", "--body-file", "--method")
    deed = _fetch("wget", parts, parts.operands, kept, sends=sends)
    if parts.has("-e", "--execute", "--use-askpass"):
        deed = replace(deed, level="high", why="starts a program or changes its settings")
    return replace(deed, writes=(*kept, *_kept(logs)), reads=files)


def _fetch(name: str, parts: Split, urls: Arguments, kept: Arguments, *, sends: bool) -> Action:
    hosts = hosts_in(urls, bare=True)
    complete = len(hosts) > 0 and all(one.known for one in urls)
    # A proxy sees everything, wherever the address leads.
    proxies = hosts_in(parts.values(("-x", "--proxy")), bare=True)
    where = f" {', '.join(hosts)}" if hosts else " a host"
    return Action(
        "low",
        f"sends data to{where}" if sends else f"fetches from{where}",
        changes=sends,
        network=True,
        hosts=(*hosts, *proxies) if complete else (),
        downloads=kept,
        pattern=" ".join((name, *hosts)) if complete else None,
    )


def _method(parts: Split) -> bool:
    methods = {one.text.upper() for one in parts.values(("-X", "--request"))}
    return bool(methods - {"GET", "HEAD"})


def _read(parts: Split) -> Arguments:
    files = names("-K --config -E --cert --key --cacert -T --upload-file")
    return _kept(parts.values(files))


def _kept(files: Arguments) -> Arguments:
    return tuple(one for one in files if one.text not in _STDOUT)


def _named(url: Argument) -> Argument:
    """The file that an address is kept in by its own name."""
    try:
        path = urlsplit(url.text if "://" in url.text else f"//{url.text}").path
    except ValueError:
        return Argument(url.text, known=False)
    return Argument(basename(path) or "index.html", url.known)


def _below(directory: Argument, file: Argument) -> Argument:
    return Argument(f"{directory.text}/{file.text}", directory.known and file.known)


def _files(sent: Arguments) -> Arguments:
    """The files that are sent: `@file`, `name=@file`, or the file to upload."""
    found = tuple(one.after(one.text.index("@") + 1) for one in sent if "@" in one.text)
    return tuple(one for one in found if one.text != "-")
