"""Values, and how a rule is started and resumed: the ground of every derivative."""
