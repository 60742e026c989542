"""The weights and buffers that the runs begin with (AL3xx)."""
