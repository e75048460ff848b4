"""Providers' batch APIs: many requests in one file, answered within a day at half the price.

`format.py` has the nouns, `openai.py` and `anthropic.py` a vendor's files and words (pure), `calls.py` and
`client.py` the calls, `upload.py` the file on its way.
"""
