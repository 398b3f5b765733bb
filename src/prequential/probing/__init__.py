"""Probing: the description length of labels given what frozen networks make of the inputs."""
