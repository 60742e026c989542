"""Losses and step times over the whole run (AL8xx)."""
