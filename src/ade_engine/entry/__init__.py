"""The modules that a child process runs, one for each kind of work: `main(inputs, channel)`."""
