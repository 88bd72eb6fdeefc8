"""Native code for staged programs of numbers and trees, by way of LLVM's text."""
