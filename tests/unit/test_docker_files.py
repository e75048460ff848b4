"""Files of docker/ name what is there: metrics that are served, mounted files, settings that exist."""

from __future__ import annotations

import importlib.util
import inspect
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from mmbu_async.config import DEFAULT_KEY_VARIABLES
from mmbu_async.service import metrics as service_metrics
from mmbu_async.service.settings import load_service
from mmbu_async.telemetry import Metrics

DOCKER = Path(__file__).parents[2] / "docker"
COMPOSE: dict[str, Any] = yaml.safe_load((DOCKER / "compose.yaml").read_text("utf-8"))


def test_the_dashboard_asks_for_metrics_that_are_served() -> None:
    dashboard = json.loads((DOCKER / "grafana" / "dashboards" / "mmbu.json").read_text("utf-8"))
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    named = set(re.findall(r"\b(?:mmbu|process)_\w+", " ".join(asked)))
    of_requests = set(Metrics().registry._families)
    of_service = set(re.findall(r'"(mmbu_\w+)"', inspect.getsource(service_metrics)))
    families = {name.removesuffix("_bucket") for name in named}
    assert families <= of_requests | of_service
    assert families >= of_requests, "each has its place on the dashboard"


def test_what_is_mounted_is_there() -> None:
    mounts = [mount for service in COMPOSE["services"].values() for mount in service.get("volumes", [])]
    for mount in mounts:
        source = mount.split(":")[0]
        assert (DOCKER / source).exists() if source.startswith(".") else source in COMPOSE["volumes"]


@pytest.mark.parametrize("name", COMPOSE["services"])
def test_no_service_can_write_to_its_own_files_or_gain_rights(name: str) -> None:
    service = COMPOSE["services"][name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))


def test_settings_of_the_service_are_settings() -> None:
    settings = load_service(DOCKER / "service.toml")
    assert "simulator" in [endpoint.name for endpoint in settings.endpoint]
    assert set(settings.data) == {"demo"}


def test_secrets_come_from_files(tmp_path: Path) -> None:
    program = tmp_path / "mmbu"
    program.write_text(
        '#!/bin/sh\necho "$OPENAI_API_KEY/${ANTHROPIC_API_KEY-none}/${OPENAI_API_KEY_FILE-none}/$*"\n'
    )
    program.chmod(0o755)
    (tmp_path / "key").write_text("sk-canary\n")
    (tmp_path / "empty").write_text("\n")
    files = {"OPENAI_API_KEY_FILE": str(tmp_path / "key"), "ANTHROPIC_API_KEY_FILE": str(tmp_path / "empty")}
    done = subprocess.run(
        [DOCKER / "entrypoint.sh", "run", "x y"],
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}"} | files,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "sk-canary/none/none/run x y\n"


def test_every_maker_has_its_key_in_the_entrypoint() -> None:
    known = set(re.findall(r"\b[A-Z_]+_API_KEY\b", (DOCKER / "entrypoint.sh").read_text("utf-8")))
    assert known == set(DEFAULT_KEY_VARIABLES.values())
    assert known <= set(COMPOSE["services"]["service"]["environment"])


def test_only_a_container_that_serves_is_asked_for_its_health() -> None:
    spec = importlib.util.spec_from_file_location("healthcheck", DOCKER / "healthcheck.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.serves(b"python\0/opt/mmbu/bin/mmbu\0serve\0--port\08080\0")
    assert not module.serves(b"python\0/opt/mmbu/bin/mmbu\0run\0mmbu-public\0")
