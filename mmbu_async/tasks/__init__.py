"""Benchmarks, one file each: how a row becomes a prompt and a reply becomes a score. Pure, no I/O."""

from mmbu_async.tasks.registry import NAMES, benchmarks, load

__all__ = ["NAMES", "benchmarks", "load"]
