"""The version, in the one place that is there however the package came to be imported. No torch."""

VERSION = "0.1.0"
