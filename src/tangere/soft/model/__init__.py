"""What bodies are made of: common arrays, materials, elastic energy."""
