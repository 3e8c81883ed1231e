"""Stage 7 of the pipeline on CPUs: eight pairs of features at a time."""
