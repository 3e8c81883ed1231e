"""Questions by a whole GPU."""
