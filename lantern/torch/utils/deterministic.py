"""What PyTorch does for programs that shall give the same results each time."""

# Whether new memory is filled: what ``torch.empty`` gives is never looked at here.
fill_uninitialized_memory = True
