"""The documents as printed, right or wrong, for comparison: nothing above imports them at module level."""
