"""Where gradients part: the loss, one operator, a factor, ranks (AL5xx, AL408)."""
