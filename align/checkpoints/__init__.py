"""What one checkpoint is to another: pairs of entries, relations of their values, findings."""
