"""Count the words of a stored text, as a job of ADE."""
