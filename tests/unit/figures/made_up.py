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
