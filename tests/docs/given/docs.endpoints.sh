#: https://openrouter.ai/api/v1=https://api.openai.com/v1
export GEMINI_API_KEY=sk-of-the-stage-0123456789 AZURE_OPENAI_API_KEY=sk-of-the-stage-0123456789
export OPENROUTER_API_KEY=sk-of-the-stage-0123456789
