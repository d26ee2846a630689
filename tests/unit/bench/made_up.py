"""Measurements of a machine that does not exist, with round numbers."""

from tianji.bench import sweep

SIZE = 512 << 10
CORES = 2


def measured(
    actors=1, sample_time_s=0.0, size=SIZE, sender_us=40.0, receiver_us=10.0, sample_s=None,
    s_per_10k=1.0, copying=False,
):  # fmt: skip
    rate = 10_000 / s_per_10k
    return {
        "transport": "tianji", "size_bytes": size, "actors": actors, "copying": copying,
        "sample_time_s": sample_time_s, "sender_cpu_us": sender_us, "receiver_cpu_us": receiver_us,
        "measured_sample_s": sample_time_s if sample_s is None else sample_s,
        "messages": 10_000, "received": 10_000, "collection_s": s_per_10k,
        "collection_s_per_10k": s_per_10k, "messages_per_s": rate, "mb_per_s": rate * size / 1e6,
        "memcpy_mb_per_s": 12_000.0, "share_of_memcpy": rate * size / 12e9,
    }  # fmt: skip


ALONE = (
    measured(s_per_10k=0.4),
    measured(1, 0.001, sender_us=45.0, sample_s=0.00106, s_per_10k=11.0),
    measured(1, 0.010, sender_us=39.0, sample_s=0.01016, s_per_10k=102.0),
)
"""Sending takes 40 us, receiving 10 us, sampling for 1 ms 5 us of processor time."""


LOADED = {
    (SIZE, 2): {"sender_cpu_us": 60.0, "receiver_cpu_us": 10.0, "measured_sample_s": 0.0},
    (SIZE, 4): {"sender_cpu_us": 80.0, "receiver_cpu_us": 20.0, "measured_sample_s": 0.0},
}
"""With two runs at once on the two cores, and with four."""


def measure(point):
    """Sending takes 40 us per 512 KB, receiving 10 us; sampling what was asked for."""
    part = point.size_bytes / SIZE
    busy_s = (point.sample_time_s + 40e-6 * part) / point.num_actors
    seconds = 10_000 * max(busy_s, 10e-6 * part, 25e-6 * part)
    return measured(
        point.num_actors, point.sample_time_s, point.size_bytes, 40.0 * part, 10.0 * part,
        s_per_10k=seconds,
    )  # fmt: skip


def sweep_made_up(monkeypatch):
    """A sweep takes no time and starts no process."""
    monkeypatch.setattr(sweep, "measure", measure)
    monkeypatch.setattr(sweep, "measure_loaded", lambda point, num_runs: measure(point))
    monkeypatch.setattr(sweep, "idle_share", lambda: 0.0012)
    monkeypatch.setattr(sweep.os, "sched_getaffinity", lambda _: {0, 1})
