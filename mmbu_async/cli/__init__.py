"""The command line: one function a command, no logic."""

from mmbu_async.cli.main import main

__all__ = ["main"]
