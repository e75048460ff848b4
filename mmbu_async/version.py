"""The package's version, from its installed metadata."""

from importlib.metadata import PackageNotFoundError, version

try:
    VERSION = version("mmbu-async")
except PackageNotFoundError:  # a source tree that was never installed
    VERSION = "0.1.0.dev0"
