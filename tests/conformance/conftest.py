"""The files here are programs, to be run alone: nothing in them is a test of ours."""

collect_ignore_glob = ["*.py"]
