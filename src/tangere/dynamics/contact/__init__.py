"""Contacts as rows: who meets whom, gaps, second-order terms, what was hit."""
