"""One query by several CPU threads."""
