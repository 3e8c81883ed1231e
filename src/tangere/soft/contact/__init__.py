"""What touches: nearest faces and edges, contact rows, islands."""
