"""Data for figures, made up: no figure of it leaves the tests."""

TRANSPORTS = {"tianji": (12_000, 2e-6), "pipe": (1_800, 6e-6), "ray": (300, 1e-3)}
SIZES = (4 << 10, 64 << 10, 512 << 10, 2 << 20)


def point(transport, size_bytes, actors=1, sample_time_s=0.0, copying=False, slower=1.0):
    speed, latency_s = TRANSPORTS[transport]
    per_message_s = max(size_bytes / (speed * 1e6) + latency_s, sample_time_s / actors) * slower
    made = {
        "transport": transport, "size_bytes": size_bytes, "actors": actors,
        "sample_time_s": sample_time_s, "copying": copying, "messages": 10_000,
        "collection_s_per_10k": 10_000 * per_message_s, "messages_per_s": 1 / per_message_s,
        "mb_per_s": size_bytes / per_message_s / 1e6, "measured_sample_s": sample_time_s * 1.02,
    }  # fmt: skip
    return made | ({"memcpy_mb_per_s": 13_000.0} if transport == "tianji" else {})


def content(name, points):
    return {
        "figure": name, "command": "made up", "commit": "none", "versions": {"tianji": "0"},
        "machine": {"cpu": "Made-up CPU", "cores": 2}, "points": points,
    }  # fmt: skip


def sizes_data():
    points = [
        point(name, size, slower=slower)
        for name in TRANSPORTS for size in SIZES for slower in (1.0, 1.1, 1.3)
    ]  # fmt: skip
    points += [point("tianji", size, copying=True, slower=2.0) for size in SIZES]
    points += [point("tianji", SIZES[0], actors=2), point("tianji", SIZES[0], sample_time_s=0.01)]
    return content("tianji-5a", points)


def actors_data():
    points = [
        point(name, 512 << 10, actors, sample_time_s, slower=slower)
        for name in TRANSPORTS for actors in (1, 2, 4) for sample_time_s in (0.0, 0.001, 0.01)
        for slower in (1.0, 1.2)
    ]  # fmt: skip
    return content("tianji-5b", [*points, point("tianji", 4 << 10, 4)])


def scaling_data(name="tianji-6a", ratio=2.0):
    """One actor makes 10,000 steps a second, and the learner takes 35,000."""
    points = []
    for actors in (1, 2, 3, 4, 6):
        rate = min(10_000.0 * actors, 35_000.0)
        rates = {"produced": rate, "received": rate, "trained": ratio * rate}
        points.append({"actors": actors, **rates, "lag_versions": 1.0})
    scaling = {
        "learner_threads": 1, "batch_size": 128, "updates_per_actor": 4, "ratio": ratio,
        "unroll_length": 256,
    }  # fmt: skip
    more = {"scaling": scaling, "capacity": {"actor": 10_000.0, "learner": 35_000.0}}
    more["machine"] = {"cpu": "Made-up CPU", "cores": 16}
    return {**content(name, points), **more, "simulated": points, "profile": profile()}


def profile():
    cost = {"alone_s": 0.0256, "loaded_s": 0.0256, "cpu_s": 0.0256, "noise": 0.0}
    actor = {
        "num_envs": 1, "threads": 1, "unroll": cost, "environment_share": 0.5, "unevenness": 1.0,
        "memory_bytes": 1,
    }  # fmt: skip
    version = {name: 1024 / 35_000 if name != "noise" else 0.0 for name in cost}
    learner = {
        "threads": 1, "version": version, "update_s": 0.0018, "receive_s": 1e-5, "publish_s": 1e-5,
        "memory_bytes": 1,
    }  # fmt: skip
    return {
        "steps_per_version": 1024, "actors": [actor], "learners": [learner], "send_s": 1e-5,
        "policy_bytes": 1000, "unroll_bytes": 1000,
    }  # fmt: skip


def groups_data():
    """One group receives 10,000 steps a second; two of them reach the target in half the time."""
    runs = [
        group_run(preset, groups, combine, seed)
        for preset in ("cartpole-ppo", "cartpole-dqn")
        for groups, combine in ((1, "average"), (2, "average"), (2, "gossip"), (2, "gradients"))
        for seed in (1, 2, 3)
    ]
    simulated = [
        {
            "preset": preset, "nodes": nodes, "groups": 2 * nodes, "combine": combine,
            "received": 20_000.0 * nodes, "trained": 80_000.0 * nodes, "lag_versions": 1.0,
            "bottleneck": "training", "mix_period_s": 0.05,
        }
        for preset in ("cartpole-ppo", "cartpole-dqn")
        for combine in ("average", "gossip", "gradients")
        for nodes in (1, 2, 8, 32, 256)
    ]  # fmt: skip
    simulated_here = [
        {**row, "seed": seed} for row in simulated for seed in (1, 2, 3) if row["nodes"] == 1
    ]
    more = {
        "cores_per_group": 1, "target": 300.0, "simulated": simulated,
        "simulated_here": simulated_here,
    }  # fmt: skip
    return {**content("tianji-groups", runs), **more}


def group_run(preset, groups, combine, seed):
    seconds = [0.0, 5.0 / groups, (10.0 + seed) / groups]
    return {
        "preset": preset, "groups": groups, "combine": combine, "seed": seed, "cores": groups,
        "seconds": 12.0,
        "rates": {"received": 10_000.0 * groups, "trained": 40_000.0 * groups},
        "lag_versions": 1.0, "time_to_target_s": seconds[-1], "env_steps": 100_000,
        "curve": {"seconds": seconds, "steps": [0, 50_000, 100_000], "return": [20, 100, 300]},
    }  # fmt: skip


def hosts_data():
    points = [
        {
            "actors": actors, "sample_time_s": sample_s, "size_bytes": 512 << 10, "hosts": 4,
            "messages": 1500, "turn": turn, "encrypted": True, "mb_per_s": 100.0,
            "collection_s_per_10k": max(10_000 * sample_s / actors, 12.0) + turn,
        }
        for actors in (1, 4, 16) for sample_s in (0.001, 0.01) for turn in (0, 1, 2)
    ]  # fmt: skip
    return content("tianji-5c", points)


def link_data():
    points = [
        {
            "contestant": name, "limit_gbit": gbit, "turn": turn, "size_bytes": size,
            "mb_per_s": min(size / 1e3, 118.0 if gbit else 1000.0) + turn,
        }
        for name in ("link", "link-tls") for gbit in (1.0, None) for size in SIZES
        for turn in (0, 1)
    ]  # fmt: skip
    limits = [
        {"contestant": "iperf3", "limit_gbit": gbit, "turn": 0, "size_bytes": None, "mb_per_s": mb}
        for gbit, mb in ((1.0, 119.0), (None, 1387.0))
    ]
    return content("tianji-5d", [*points, *limits])


def ablation_data():
    """Fresh batches learn twice as fast as stale ones; planned runs have twice the speed."""
    runs = []
    for mapping, speed in (("planned", 2.0), ("arbitrary", 1.0)):
        for pool_batches in (1, 8):
            for seed in (1, 2, 3):
                steps = [0, 1000, 2000]
                gain = 0.2 if pool_batches == 1 else 0.1
                curve = {
                    "steps": steps, "seconds": [step / 1000 / speed for step in steps],
                    "return": [gain * step + seed for step in steps],
                }  # fmt: skip
                about = {"mapping": mapping, "pool_batches": pool_batches, "seed": seed}
                runs.append({**about, "curve": curve})
    mappings = {"planned": [1, 1], "arbitrary": [8, 2]}
    return {**content("tianji-6d", runs), "mappings": mappings}


def equation_data():
    """One actor is fitted on; two are 10 % off by the equation without cores, four 50 %."""

    def row(actors, equation, predicted, printed):
        return {
            "size_bytes": 512 << 10, "actors": actors, "sample_time_s": 0.001,
            "collection_s_per_10k": 10.0 / actors, "is_fitted": actors == 1,
            "equation_s_per_10k": equation * 10.0 / actors,
            "predicted_s_per_10k": predicted * 10.0 / actors,
            "printed_equation_s_per_10k": printed * 10.0 / actors,
        }  # fmt: skip

    points = [row(1, 1.0, 1.0, 1.0), row(2, 0.9, 1.0, 2.0), row(4, 0.5, 1.1, 4.0)]
    return content("equation-1", points)
