"""The operations of torchvision's compiled libraries, by this library's own rules."""
