"""One module a command, named as the command; its `command` parses flags and prints."""
