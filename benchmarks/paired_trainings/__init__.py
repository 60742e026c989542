"""Small trainings in pairs: a reference, and a candidate on another device or with one known fault."""
