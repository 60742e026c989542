"""The tests of align."""
