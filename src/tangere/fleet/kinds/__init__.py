"""Kinds of jobs: what is asked of each row, and how it is answered. Each loads the rooms that it asks."""
