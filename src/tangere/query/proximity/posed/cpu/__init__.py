"""The search of posed bodies on CPUs: eight oriented boxes at a time."""
