"""Tests of the rules of diagnosis."""
