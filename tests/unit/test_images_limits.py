"""The table of what providers accept, and a user's own beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mmbu_async.errors import ConfigError
from mmbu_async.images import find_limits

MIB = 2**20


def own(folder: Path, text: str) -> Path:
    file = folder / "own.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_the_host_decides_before_the_wire_format() -> None:
    direct = find_limits("anthropic", "api.anthropic.com")
    elsewhere = find_limits("anthropic", "127.0.0.1")
    assert (direct.name, direct.max_bytes_base64) == ("claude-api", 10 * MIB)
    assert (elsewhere.name, elsewhere.max_bytes_base64) == ("anthropic", 5 * MIB)
    assert direct.max_edge == elsewhere.max_edge == 8000
    assert find_limits("openai", "api.openai.com").name == "openai-api"
    assert find_limits("openai", "localhost").name == "openai"
    assert find_limits("openai", "api.anthropic.com").name == "openai"


@pytest.mark.parametrize(
    ("endpoint", "host"),
    [
        ("anthropic", "api.anthropic.com"),
        ("anthropic", "x"),
        ("openai", "api.openai.com"),
        ("openai", "generativelanguage.googleapis.com"),
        ("openai", "api.x.ai"),
        ("openai", "x"),
        ("responses", "api.openai.com"),
        ("responses", "x"),
        ("azure", "mine.openai.azure.com"),
        ("gemini", "generativelanguage.googleapis.com"),
    ],
)
def test_every_entry_says_where_it_is_from(endpoint: str, host: str) -> None:
    limits = find_limits(endpoint, host)
    assert limits.source.startswith("https://")
    assert {"image/png", "image/jpeg"} <= limits.accepted


def test_many_images_in_one_request() -> None:
    limits = find_limits("anthropic", "api.anthropic.com")
    assert limits.for_images(20) is limits
    assert limits.for_images(21).max_edge == 2000
    assert find_limits("openai", "x").for_images(1000).max_edge > 10**9


def test_a_file_of_ones_own_overrides_key_by_key(tmp_path: Path) -> None:
    file = own(tmp_path, "[anthropic]\nmax_edge = 1568\n")
    limits = find_limits("anthropic", "127.0.0.1", file)
    assert (limits.max_edge, limits.max_bytes_base64) == (1568, 5 * MIB)
    assert find_limits("openai", "127.0.0.1", file) == find_limits("openai", "127.0.0.1")


def test_a_file_of_ones_own_adds_hosts(tmp_path: Path) -> None:
    file = own(
        tmp_path,
        '[mine]\nendpoint = "openai"\nhosts = ["gpu.example.org", "api.openai.com"]\n'
        'accepted = ["image/png"]\n',
    )
    assert find_limits("openai", "gpu.example.org", file).accepted == {"image/png"}
    assert find_limits("openai", "api.openai.com", file).name == "mine"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[openai\n", "no valid TOML"),
        ("[openai]\nmax_edges = 3\n", r"\[openai\] max_edges"),
        ("[openai]\nmax_edge = 0\n", r"\[openai\] max_edge"),
        ("[mine]\nhosts = []\n", r"\[mine\] endpoint"),
        ("openai = 3\n", r"\[openai\]"),
        ('[openai]\naccepted = ["image/tiff"]\n', "image/tiff"),
        ("[openai]\naccepted = []\n", r"\[openai\] accepted"),
    ],
)
def test_mistakes_name_file_and_place(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        find_limits("openai", "x", own(tmp_path, text))
    assert "own.toml" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_and_an_unknown_wire_format(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.toml"):
        find_limits("openai", "x", tmp_path / "nowhere.toml")
    with pytest.raises(ConfigError, match="telegraph"):
        find_limits("telegraph", "x")
