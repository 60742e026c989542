"""Seeds, batches, labels and dropout masks (AL2xx)."""
