"""Many examples at once: values with an axis of examples, vmap, Jacobians."""
