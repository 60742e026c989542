"""Capture: watch a running training and write what it computes. The only part of align that imports torch."""
