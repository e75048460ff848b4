#!/bin/sh
# NAME_FILE=PATH in the environment becomes NAME=content, for secrets that are mounted as files.
set -eu
for name in MMBU_SERVICE_TOKEN OPENAI_API_KEY ANTHROPIC_API_KEY GEMINI_API_KEY AZURE_OPENAI_API_KEY; do
    eval "file=\${${name}_FILE:-}"
    if [ -n "$file" ]; then
        # An empty file is a key that is not given.
        value=$(cat "$file")
        [ -z "$value" ] || export "$name=$value"
        unset "${name}_FILE"
    fi
done
exec mmbu "$@"
