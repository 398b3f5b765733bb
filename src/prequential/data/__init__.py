"""Data: the ordered sequence, and where sequences come from.

Nothing is imported here: a worker that decodes images needs no torch.
"""
