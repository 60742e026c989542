"""Tests of the readers of curves."""
