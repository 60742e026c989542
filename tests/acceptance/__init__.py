"""Tests of acceptance: policies, criteria, the command, its reports."""
