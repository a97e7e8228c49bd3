"""Where graphs come from: named data sets, generators, the user's files; splits."""
