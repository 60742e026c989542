"""How often `align diff` names the right place, measured on faults that are known."""
