"""Where the simulator speaks which wire format."""

from __future__ import annotations

BASES = {"openai": "/v1", "responses": "/v1", "azure": "", "anthropic": "", "gemini": "/v1beta"}
"""Wire format -> what is added to the simulator's address for its base URL."""
