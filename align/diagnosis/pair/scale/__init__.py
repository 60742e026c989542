"""NaN, Inf and the loss scale (AL6xx)."""
