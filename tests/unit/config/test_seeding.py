"""Seeds of the parts of a run."""

from tianji.config.seeding import seed_for

KINDS = ("model", "actor", "store", "learner", "evaluator")


def test_every_part_of_a_run_has_a_seed_of_its_own():
    seeds = {seed_for(root, kind, i) for root in (1, 2) for kind in KINDS for i in range(3)}
    assert len(seeds) == 2 * len(KINDS) * 3
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_seeds_stay_what_they_are():
    """Runs of earlier versions can be repeated."""
    assert seed_for(1, "model") == 3_325_833_263_181_678_374
