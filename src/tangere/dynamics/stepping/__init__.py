"""The phases of a step: free motion, gathering, the walk, and what they report."""
