"""Which module, call, micro-step or tensor of one run answers which of the other, where names and numbers differ."""
