"""A real nginx before a server, with TLS and a sub-path, configured as the documentation says."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

DOCUMENT = Path(__file__).parents[2] / "docs" / "deploying.md"
PATIENCE = 30
"""Only reached by a test that fails."""
# What a configuration needs besides: all that it writes stays in its folder.
AROUND = """\
user root;
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log notice;
events {{ worker_connections 256; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxied;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
{server}
}}
"""
# The same server at other paths: one that the proxy leaves in, and one that no flag names.
MORE_PATHS = """
    location /left-in/ {{
        {headers}
        proxy_set_header X-Forwarded-Prefix /left-in;
        proxy_pass http://127.0.0.1:{port};
    }}
    location /one/more/ {{
        {headers}
        proxy_set_header X-Forwarded-Prefix /one/more;
        proxy_pass http://127.0.0.1:{port}/;
    }}
"""


def documented() -> str:
    """The server block of the documentation."""
    match = re.search(r"```nginx\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    assert match is not None
    return match[1]


def program(name: str) -> str:
    executable = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")
    assert executable is not None, f"there is no {name}: `make test` installs it"
    return executable


class Proxy:
    """Where it will be is known before it starts: what it stands before is told that address."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._listening = socket.socket()
        self._listening.bind(("127.0.0.1", 0))
        self._listening.listen(256)
        self._port: int = self._listening.getsockname()[1]

    @property
    def origin(self) -> str:
        return f"https://localhost:{self._port}"

    @contextmanager
    def before(self, port: int) -> Generator[None]:
        """Pass on to the server at this port."""
        self._write(port)
        # It takes over the socket, as nginx does from another nginx, so nobody can be faster.
        descriptor = self._listening.fileno()
        process = subprocess.Popen(
            [program("nginx"), "-p", str(self._folder), "-c", str(self._folder / "nginx.conf")],
            env={"NGINX": f"{descriptor};", "PATH": os.environ["PATH"]},
            pass_fds=(descriptor,),
            stderr=subprocess.DEVNULL,
        )
        try:
            yield
        finally:
            process.terminate()
            process.wait(PATIENCE)

    def close(self) -> None:
        self._listening.close()

    @property
    def said(self) -> str:
        return (self._folder / "error.log").read_text()

    def _write(self, port: int) -> None:
        key, certificate = self._folder / "key.pem", self._folder / "certificate.pem"
        subprocess.run(
            [
                *(program("openssl"), "req", "-x509", "-newkey", "ec"),
                *("-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"),
                *("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"),
                *("-keyout", str(key), "-out", str(certificate)),
            ],
            check=True,
            capture_output=True,
        )
        text = documented()
        headers = "\n".join(
            line for line in text.splitlines() if "proxy_" in line and "Prefix" not in line
        )
        headers = re.sub(r"\s*proxy_pass .*;", "", headers)
        more = MORE_PATHS.format(headers=headers, port=port)
        for ours, theirs in (
            ("listen 443 ssl;", f"listen 127.0.0.1:{self._port} ssl;"),
            ("server_name example.com;", "server_name localhost;"),
            ("/etc/ssl/example.com.pem", str(certificate)),
            ("/etc/ssl/example.com.key", str(key)),
            ("127.0.0.1:8377", f"127.0.0.1:{port}"),
            ("\n}\n", f"\n{more}}}\n"),
        ):
            assert ours in text, f"the documentation has no {ours!r} any more"
            text = text.replace(ours, theirs)
        conf = AROUND.format(folder=self._folder, server=text)
        (self._folder / "nginx.conf").write_text(conf)
