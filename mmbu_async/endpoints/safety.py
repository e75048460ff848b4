"""What a user should know before keys, prompts and images go out: to whom, and who else can read them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

from mmbu_async.config import DEFAULT_KEY_VARIABLES, CallSettings

MAKERS: Mapping[str, tuple[str, ...]] = {
    "openai": ("openai.com",),
    "responses": ("openai.com",),
    "azure": ("azure.com", "azure.us", "azure.cn"),
    "anthropic": ("anthropic.com",),
    "gemini": ("googleapis.com",),
}
"""Wire format -> domains to which the key in its maker's usual variable belongs."""
_THIS_MACHINE = frozenset({"localhost", "host.docker.internal", "host.containers.internal"})
"""The latter two: the machine that a container runs on."""


def is_local(host: str) -> bool:
    """Whether a host is this machine."""
    name = host.rstrip(".").lower()
    if name in _THIS_MACHINE or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def warnings(settings: CallSettings, key: str) -> Iterator[str]:
    """A sentence for each way in which these settings may give away more than is meant. `key`: what the
    environment holds for them, '' where nothing."""
    host, flag = settings.host, settings.flag
    if is_local(host):
        return
    variable = DEFAULT_KEY_VARIABLES[settings.endpoint]
    if key and settings.api_key_env is None and not _of_maker(host, MAKERS[settings.endpoint]):
        yield (
            f"the key in {variable} goes to {host}, which is not the maker's own address: if that is meant, "
            f"say so with {flag('api_key_env')} {variable}; else name the variable with the key for {host}."
        )
    if urlsplit(settings.url).scheme == "http":
        what = "the key, prompts and images" if key else "prompts and images"
        yield (
            f"{flag('base_url')} is plain http, so that {what} can be read on their way to {host}: use "
            "https, or a tunnel that ends on this machine."
        )


def _of_maker(host: str, domains: tuple[str, ...]) -> bool:
    name = host.rstrip(".").lower()
    return any(name == domain or name.endswith(f".{domain}") for domain in domains)
