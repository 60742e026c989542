"""The rules of two runs: plain functions over the walk, one cause a file, in packages by what they speak of."""
