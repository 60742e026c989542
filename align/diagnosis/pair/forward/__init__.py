"""Where the forward parts, and whether it does (AL4xx)."""
