"""Tables as people have them: read into columns, decided on, encoded as rows of numbers.

`reading` opens files, `decide` says what becomes of each column, `schema` is how that is written down, `encode` does
it, `standardise` scales, and `build` puts them together. Files are read by pyarrow: it finds types, dates and holes by
itself, in parallel, into columns that are used without a copy, and data frames of any library can be handed to it.
"""
