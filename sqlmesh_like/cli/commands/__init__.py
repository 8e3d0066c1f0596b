"""One module per command, named after it; its `command` parses flags and prints."""
