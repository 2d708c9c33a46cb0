"""Add, list, change and remove named users: people who share one `keryx serve`.

Each user signs in with a name and a password, sees only their own sessions, and works in a folder
of their own. Without named users, the server has one user and asks for no name.
"""

from __future__ import annotations

import argparse
import getpass
import sys
import time
from pathlib import Path

from keryx.cli.values import dollars, read_password, tokens
from keryx.config import load
from keryx.config.users import UserRecord
from keryx.errors import UserMustActError
from keryx.server.access.users import Users


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    add = verbs.add_parser("add", help="add a user; asks for a password")
    add.add_argument("name")
    add.add_argument("--folder", help="where the user's sessions work; default: a new folder")
    verbs.add_parser("list", help="list the users, their folders and limits")
    password = verbs.add_parser("password", help="set a new password; signs the user out")
    password.add_argument("name")
    for verb in (add, password):
        verb.add_argument("--password-file", help="a file with the password; default: ask for it")
    limit = verbs.add_parser("limit", help="set what a user may spend in a day")
    limit.add_argument("name")
    limit.add_argument("--cost-per-day", type=dollars, help="in US dollars; absent: no limit")
    limit.add_argument("--tokens-per-day", type=tokens, help="absent: no limit")
    for name, words in (
        ("disable", "let a user sign in no more; keeps everything"),
        ("enable", "let a user sign in again"),
        ("remove", "remove a user with all sessions; the user's folder stays"),
    ):
        verbs.add_parser(name, help=words).add_argument("name")


def run(options: argparse.Namespace) -> int:
    users = Users(load(options.home).home)
    match options.verb:
        case "add":
            folder = None if options.folder is None else Path(options.folder)
            user = users.add(options.name, _password(options.password_file), folder)
            print(f"{user.name} works in {user.folder}")
        case "list":
            for user in users.all():
                print(_line(user))
        case "password":
            users.find(options.name)
            users.set_password(options.name, _password(options.password_file), at=time.time())
        case "limit":
            user = users.change(
                options.name,
                cost_per_day=options.cost_per_day,
                tokens_per_day=options.tokens_per_day,
            )
            print(_line(user))
        case "remove":
            users.remove(options.name)
        case verb:
            users.change(options.name, disabled=verb == "disable")
    return 0


def _line(user: UserRecord) -> str:
    limits = [
        *([] if user.cost_per_day is None else [f"at most ${user.cost_per_day:g} a day"]),
        *([] if user.tokens_per_day is None else [f"at most {user.tokens_per_day} tokens a day"]),
        *(["disabled"] if user.disabled else []),
    ]
    return "  ".join([f"{user.name:<16}", user.folder, *limits])


def _password(file: str | None) -> str:
    if file is not None:
        return read_password(file)
    if not sys.stdin.isatty():
        raise UserMustActError(
            "there is no terminal to ask for the password; give it with --password-file"
        )
    return getpass.getpass("Password: ")
