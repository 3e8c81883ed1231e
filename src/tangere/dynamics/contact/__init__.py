"""Contacts of a world: who may meet, rows, hits, impacts."""
