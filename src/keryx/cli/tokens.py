"""Make, list and revoke tokens: programs use them to sign in to `keryx serve`."""

from __future__ import annotations

import argparse
import sys

from keryx.config import load
from keryx.server.access.tokens import Tokens
from keryx.server.access.users import Users


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    make = verbs.add_parser("make", help="make a token and print it; it is shown only once")
    make.add_argument("name", help="what the token is for")
    make.add_argument("--user", help="the named user whose sessions it reaches; default: the owner")
    verbs.add_parser("list", help="list the tokens, and the days they were made and last used on")
    revoke = verbs.add_parser("revoke", help="revoke a token: it no longer signs in")
    revoke.add_argument("name")


def run(options: argparse.Namespace) -> int:
    home = load(options.home).home
    tokens = Tokens(home)
    match options.verb:
        case "make":
            if options.user is not None:
                Users(home).find(options.user)
            print(tokens.make(options.name, options.user or ""))
        case "list":
            for token in tokens.all():
                used = f"made {token.made}  last used {token.used or 'never'}"
                print(f"{token.name:<24} {used}{f'  for {token.user}' if token.user else ''}")
        case _:
            if not tokens.revoke(options.name):
                print(
                    f"keryx: there is no token {options.name!r}; `keryx tokens list` shows all",
                    file=sys.stderr,
                )
                return 1
    return 0
