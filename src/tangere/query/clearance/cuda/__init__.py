"""The search by a whole GPU."""
