"""The command lines of a seed's sessions."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from tests.endurance.ledger import PRICES
from tests.endurance.plan import Plan
from tests.endurance.session import Stage
from tests.simulated import BASES

PATIENCE = {
    "timeout": 4.0,
    "idle_timeout": 1.5,
    "connect_timeout": 2.0,
    "max_attempts": 4,
    "max_retry_time": 20.0,
}
"""Seconds and attempts of every call: those of a night, cut short."""


@dataclass(frozen=True, slots=True)
class Commands:
    """Arguments of `mmbu`. `named`: the endpoint's name has to be looked up."""

    plan: Plan
    data: Path

    def run(self, stage: Stage, *, limit: int, named: bool = False) -> list[str]:
        plan = self.plan
        arguments = ["run", "mmbu-public", "--name", "r", "--model", "m", "--data", str(self.data)]
        arguments += [*self._where(stage, limit, named=named), "--synchronous", plan.synchronous]
        for dashes, endpoint, stream, concurrency in (
            ("--", plan.endpoint, plan.stream, plan.concurrency),
            ("--judge-", plan.judge_endpoint, plan.judge_stream, plan.judge_concurrency),
        ):
            settings = PATIENCE | {
                "endpoint": endpoint,
                "concurrency": concurrency,
                "input_price": PRICES["input"],
                "output_price": PRICES["output"],
            }
            for name, value in settings.items():
                arguments += [dashes + name.replace("_", "-"), str(value)]
            arguments += [f"{dashes}stream"] if stream else []
        if plan.panel:
            arguments += ["--panel", str(self._panel(stage)), "--verdict", "majority"]
        return arguments

    def resume(self, stage: Stage, *, limit: int, named: bool = False) -> list[str]:
        """The rest is in the store; the address is given anew."""
        return ["resume", "r", *self._where(stage, limit, named=named)]

    def rejudge(self, stage: Stage, *, named: bool = False) -> list[str]:
        """Another model as judge, which has another price."""
        return [
            *("rejudge", "r", "--store", str(stage.store), "--judge-model", "second-judge"),
            *("--judge-base-url", _url(stage, self.plan.judge_endpoint, named=named)),
            *("--judge-input-price", str(PRICES["input"]), "--judge-output-price", str(PRICES["output"])),
        ]

    def _where(self, stage: Stage, limit: int, *, named: bool) -> list[str]:
        return [
            *("--store", str(stage.store), "--limit", str(limit)),
            *("--base-url", _url(stage, self.plan.endpoint, named=named)),
            *("--judge-base-url", _url(stage, self.plan.judge_endpoint, named=named)),
        ]

    def _panel(self, stage: Stage) -> Path:
        """The file of the further judges, who are reached by number in every session."""
        tables = []
        for number in range(1, self.plan.panel + 1):
            endpoint = ("anthropic", "openai")[number % 2]
            settings = PATIENCE | {
                "model": f"panel-judge-{number}",
                "endpoint": endpoint,
                "base_url": _url(stage, endpoint, named=False),
                "concurrency": self.plan.judge_concurrency,
                "input_price": PRICES["input"],
                "output_price": PRICES["output"],
            }
            lines = (f"{name} = {json.dumps(value)}\n" for name, value in settings.items())
            tables.append("[[panel]]\n" + "".join(lines))
        file = stage.folder / "panel.toml"
        file.write_text("\n".join(tables), "utf-8")
        return file


def _url(stage: Stage, endpoint: str, *, named: bool) -> str:
    return stage.endpoint.url(named=named) + BASES[endpoint]
