"""Tables as people have them: read into columns, decided on, encoded as rows of numbers.

`reading` opens files, `roles` says what the columns are for and `decide` what becomes of each, `schema` is how that is
written down, `encode` does it, `standardise` scales, and `build` puts them together. Files are read by pyarrow: it
finds types, dates and holes by itself, in parallel, into columns that are used without a copy, and data frames of any
library can be handed to it.
"""
