"""Hyperbolic graph neural networks."""
