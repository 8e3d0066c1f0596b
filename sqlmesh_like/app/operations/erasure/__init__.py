"""`sml forget`: rows of a source's table leave the lake. `plan` finds what can have them, `erase` removes it in an
order that a crash cannot harm, `proof` searches all files afterwards.
"""
