"""The version of this package, the only place that has it."""

VERSION = "0.1.0"
