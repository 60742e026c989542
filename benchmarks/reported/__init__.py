"""Whether the right thing is said of each reported case, through real captures and the real commands."""
