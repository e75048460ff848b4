"""Benchmarks of the whole and of its parts. `python -m benchmarks` runs all, `python -m benchmarks.NAME` one.

Each prints a table and writes JSON; docs/benchmarks.md is made from that JSON. No test depends on them.
"""
