"""The paper's tables and figures: what was printed, measured again."""
