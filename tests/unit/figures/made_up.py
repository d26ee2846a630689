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
    points = [{**scaling_data()["points"][3], "groups": count} for count in (1, 2, 4)]
    for point in points:
        for name in ("produced", "received", "trained"):
            point[name] *= point["groups"]
    return {**content("tianji-6c", points), "scaling": scaling_data()["scaling"]}


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
