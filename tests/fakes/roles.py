"""Roles by name, with their kinds, for gauges and orders of tests."""

ONE_ACTOR = {"actor-0": "actor", "buffer": "buffer", "learner": "learner"}
TWO_ACTORS = {"actor-0": "actor", "actor-1": "actor", "buffer": "buffer", "learner": "learner"}
