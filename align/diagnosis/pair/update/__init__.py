"""What the optimizers make of equal gradients (AL7xx)."""
