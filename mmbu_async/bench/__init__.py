"""Load generation and saturation search over `endpoints/`: what an endpoint can do for image questions.

A bench is a few stages. A stage puts one load on one endpoint (`plan.py`), sends each request once and keeps
one record of it, good or bad (`exchange.py`, `record.py`), looks at itself meanwhile (`watching.py`), and
ends in figures that are computed from its records alone (`figures.py`).
"""
