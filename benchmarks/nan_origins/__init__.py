"""How often `align inspect` names the place where NaN and Inf start, on trainings in which it is known."""
