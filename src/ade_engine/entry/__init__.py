"""The modules that a child process runs: each has `main(inputs, channel)`, which returns JSON."""
