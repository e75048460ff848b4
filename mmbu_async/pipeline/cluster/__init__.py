"""Calls and image work on the workers of a Dask cluster. Rows, limits, money and the store stay here.

`docs/design/several_machines.md` says how and why. Only modules of this folder import `distributed`, which is
an extra, and nothing imports them before a run asks for a cluster.
"""
