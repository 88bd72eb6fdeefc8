"""A suspended rule that its value owns: derivatives without a delimiter."""
