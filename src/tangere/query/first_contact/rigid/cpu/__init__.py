"""One question by several CPU threads."""
