"""Fingerprints of data: equal only if the content is."""

import hashlib

import torch

ROWS_AT_ONCE = 4096


def digest_of_rows(stored: torch.Tensor, order: torch.Tensor, *context: object) -> str:
    """A 128-bit fingerprint of the rows in that order, their type, and what else decides their meaning.

    It does not depend on how the rows are stored: the same sequence has the same fingerprint.

    Example:
        >>> digest_of_rows(torch.tensor([1, 0]), torch.tensor([1, 0]))
        '2e28087455ebaea65260139242b5f788'
    """
    shape = (len(order), *stored.shape[1:])
    state = hashlib.blake2b(f"{stored.dtype}{shape}{context}".encode(), digest_size=16)
    for start in range(0, len(order), ROWS_AT_ONCE):
        state.update(
            stored.index_select(0, order[start : start + ROWS_AT_ONCE])
            .contiguous()
            .reshape(-1)
            .view(torch.uint8)
            .numpy()
            .data
        )
    return state.hexdigest()
