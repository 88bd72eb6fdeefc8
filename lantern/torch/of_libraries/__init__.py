"""The operations of other libraries' compiled files, by this library's own rules."""
