"""The list of passes, read top to bottom, and what runs it. (The passes' files fill in the list.)"""
