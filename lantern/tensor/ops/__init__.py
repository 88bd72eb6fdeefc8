"""The operations of arrays: one generator each."""
