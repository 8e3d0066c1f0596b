"""Work on a project that may be a stranger's, in a child process with limits of time, memory, files and output.

The system ends the child whatever it does, also within one step of C code, which no exception reaches. `settings` owns
the limits and the error of one, `record` what a child tells its parent, `child` the processes. The limits are about
resources alone: a child has the rights of its parent, which loads the objects that the child sends back.
"""
