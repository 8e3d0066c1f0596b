"""What a machine and a project need before the first run: checks (`doctor`), packages and their archives."""
