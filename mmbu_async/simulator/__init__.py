"""An endpoint that behaves like the real ones, faults included.

Imports nothing of the package but nouns and errors, so that what it says about the rest is from outside.
"""

from mmbu_async.simulator.config import Latency, SimulatorConfig
from mmbu_async.simulator.faults import Fault, FaultRule
from mmbu_async.simulator.log import Record
from mmbu_async.simulator.server import Simulator, serve

__all__ = ["Fault", "FaultRule", "Latency", "Record", "Simulator", "SimulatorConfig", "serve"]
