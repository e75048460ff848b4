"""The row browser: a small server on this machine that shows the rows of a run, read from its store.

Pages are made on the server and work without JavaScript. Nothing here writes to a run but for scores that are
behind, as every report does, and nothing is fetched from anywhere.
"""

from mmbu_async.viewer.app import application
from mmbu_async.viewer.server import serve

__all__ = ["application", "serve"]
