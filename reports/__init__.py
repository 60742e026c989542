"""Renderers: they turn results into terminal text, JSON and HTML, and never open a capture."""
