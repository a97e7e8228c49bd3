"""What a model has learned, as numbers and pictures."""
