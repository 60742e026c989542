"""The rules that read all ranks of one job, one cause a module."""
