"""How fast it is, and how exact: measured beside PyG, geoopt and textbook formulas, and drawn up as a page."""
