"""List the models that the configured providers offer, all asked at once, or download one."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from keryx.aio.loops import run_loop
from keryx.app.models import Models
from keryx.cli.model_pull import run_pull
from keryx.config import Config, load
from keryx.models.embedded.model_file import pulled_models
from keryx.models.failures import not_configured
from keryx.models.servers.providers import ROWS

FAILED = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    pull = verbs.add_parser("pull", help="download a model and check it: smollm2, 93 MB")
    pull.add_argument("name", help="the name of the model")
    list_ = verbs.add_parser("list", help="ask the configured providers, and local servers")
    list_.add_argument("--json", action="store_true", help="print the models as JSON")
    providers = verbs.add_parser("providers", help="list the providers that need only a variable")
    providers.add_argument("--json", action="store_true", help="print them as JSON")


def run(options: argparse.Namespace) -> int:
    if options.verb == "pull":
        return run_pull(options.name, options.home)
    config = load(options.home)
    if options.verb == "providers":
        return _providers(options)
    return run_loop(_list(config, pulled_models(config.home), as_json=options.json))


async def _list(config: Config, pulled: Sequence[str], *, as_json: bool) -> int:
    models = Models(config)
    try:
        offered, problems = await models.offered()
        local = await models.on_this_machine()
    finally:
        await models.close()
    addresses = {provider.base_url.rstrip("/") for provider in config.default.providers.values()}
    names = [
        *offered,
        *(
            f"{server.name}:{model}"
            for server in local
            if server.base_url.rstrip("/") not in addresses
            for model in server.models
        ),
        *pulled,
    ]
    if as_json:
        print(json.dumps({"models": names, "problems": problems}, indent=2))
    else:
        for name in names:
            print(name)
        for problem in problems:
            print(f"keryx: {problem}", file=sys.stderr)
    if not names and not problems:
        raise not_configured()
    return FAILED if problems and not names else 0


def _providers(options: argparse.Namespace) -> int:
    rows = [
        {
            "name": name,
            "address": row.base_url or f"${row.address}",
            "variable": row.keys[0] if row.keys else None,
            "format": row.format,
        }
        for name, row in ROWS.items()
    ]
    if options.json:
        print(json.dumps(rows, indent=2))
        return 0
    for row in rows:
        need = f"set {row['variable']}" if row["variable"] else "runs on this machine"
        print(f"{row['name']:<12}{need:<28}{row['format']:<11}{row['address']}")
    return 0
