"""The rules that read the inspection of one run, one cause a module."""
