"""Coding: the border that labels cross."""
