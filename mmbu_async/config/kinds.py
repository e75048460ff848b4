"""Kinds of endpoints, and what is known of each: a new kind is named here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

EndpointKind = Literal["openai", "responses", "azure", "anthropic", "gemini"]
ImageDetail = Literal["low", "medium", "high", "ultra_high", "original", "auto"]
DEFAULT_BASE_URLS: Mapping[str, str] = {
    "openai": "https://api.openai.com/v1",
    "responses": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
    "gemini": "https://generativelanguage.googleapis.com/v1beta",
}
"""Azure has no address of its own: each resource has one."""
DEFAULT_KEY_VARIABLES: Mapping[str, str] = {
    "openai": "OPENAI_API_KEY",
    "responses": "OPENAI_API_KEY",
    "azure": "AZURE_OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "gemini": "GEMINI_API_KEY",
}
_OPENAI_DETAILS = ("low", "high", "original", "auto")
IMAGE_DETAILS: Mapping[str, tuple[str, ...]] = {
    "openai": _OPENAI_DETAILS,
    "responses": _OPENAI_DETAILS,
    "azure": _OPENAI_DETAILS,
    "anthropic": (),
    "gemini": ("low", "medium", "high", "ultra_high"),
}
"""Values of `image_detail` that a wire format knows."""
ADDED_PATHS: Mapping[str, tuple[str, ...]] = {
    "openai": ("/chat/completions", "/messages"),
    "responses": ("/responses", "/chat/completions"),
    "azure": ("/responses", "/messages"),
    "anthropic": ("/messages", "/chat/completions"),
    "gemini": ("/models", "Content"),
}
"""Ends of addresses that hold what is added to them."""
ADDED: Mapping[str, str] = {
    "openai": "/chat/completions",
    "responses": "/responses",
    "azure": "/openai/...",
    "anthropic": "/v1/messages",
    "gemini": "/models",
}
"""What is added to an address, as messages put it."""
BATCH_ENDPOINTS = ("openai", "responses", "anthropic")
"""Wire formats whose batch API is known."""
