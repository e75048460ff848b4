"""Settings: file + environment + flags -> one frozen `RunConfig`.

The same names everywhere: a field here is the TOML key, the flag (`max_cost` is `--max-cost`) and the
environment variable (`MMBU_MAX_COST`). Flags win over the environment, the environment over the file.
"""

from mmbu_async.config.building import Layer, build_config
from mmbu_async.config.kinds import (
    BATCH_ENDPOINTS,
    DEFAULT_BASE_URLS,
    DEFAULT_KEY_VARIABLES,
    IMAGE_DETAILS,
    EndpointKind,
    ImageDetail,
)
from mmbu_async.config.loading import load_config, parse_json, read_panel, to_toml, with_panel_file
from mmbu_async.config.run import CLUSTER, DECIDERS, MAJORITY, RunConfig
from mmbu_async.config.settings import OFFICIAL_JUDGE, CallSettings, JudgeConfig, PanelJudge

__all__ = [
    "BATCH_ENDPOINTS",
    "CLUSTER",
    "DECIDERS",
    "DEFAULT_BASE_URLS",
    "DEFAULT_KEY_VARIABLES",
    "IMAGE_DETAILS",
    "MAJORITY",
    "OFFICIAL_JUDGE",
    "CallSettings",
    "EndpointKind",
    "ImageDetail",
    "JudgeConfig",
    "Layer",
    "PanelJudge",
    "RunConfig",
    "build_config",
    "load_config",
    "parse_json",
    "read_panel",
    "to_toml",
    "with_panel_file",
]
