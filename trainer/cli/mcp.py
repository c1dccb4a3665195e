"""`trainer mcp`: a server of the Model Context Protocol over the commands that print JSON."""

from __future__ import annotations

import argparse
from typing import Final

from trainer.errors import UserError

GROUP = "Share"
HELP = "serve the commands to agents by the Model Context Protocol, on standard input and output; read-only"


EXTRA: Final = "trainer mcp needs the SDK of the protocol. Install it: pip install 'contrastive-explorer[mcp]'"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what may be done beyond reading."""
    parser.add_argument(
        "--allow-train", action="store_true", help="also offer to train, to stop and to evaluate; else nothing changes"
    )


def run(args: argparse.Namespace) -> int:
    """Serve until the client closes standard input.

    Raises:
        UserError: The SDK is not installed.
    """
    try:
        from trainer.agents.mcp_server import server_of
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "mcp":
            raise
        raise UserError(EXTRA) from error
    server_of(args.workspace.folder, allow_train=args.allow_train).run()
    return 0
