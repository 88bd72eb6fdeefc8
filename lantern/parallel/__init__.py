"""Parts of a program in several threads, with the bits of the program in one."""
