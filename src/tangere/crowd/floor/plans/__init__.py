"""What people walk on: floor plans, buildings of several storeys, and where they are too narrow."""
