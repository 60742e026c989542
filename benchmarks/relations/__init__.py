"""How often a tensor's, and a model's, relation is told right; `python -m benchmarks.relations` prints the tables."""
