"""The methods of the PyTorch-compatible API's tensors."""
