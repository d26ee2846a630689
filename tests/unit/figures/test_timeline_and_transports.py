"""What is on the figures: looked up in the drawing, not compared as pixels."""

import pytest

from tests.unit.figures.made_up import actors_data, sizes_data
from tianji.errors import UsageError
from tianji.figures import timeline as picture
from tianji.figures.timeline import Window, choose, look
from tianji.figures.transports import draw_actors, draw_sizes, to_series
from tianji.trace.flows import Share
from tianji.trace.read import Arrow, Span, Timeline, Touch


def lines(axes):
    return {line.get_label(): line for line in axes.get_lines()}


def test_throughput_by_size_has_a_line_per_transport_and_the_limit_of_the_machine():
    left, right = draw_sizes(sizes_data()).axes
    drawn = {"tianji", "tianji, receiver copies", "pipe", "ray", "copying memory, one core"}
    assert set(lines(left)) == drawn
    assert left.get_xscale() == left.get_yscale() == right.get_yscale() == "log"
    assert lines(left)["copying memory, one core"].get_ydata()[0] == 13_000
    sizes = list(lines(left)["tianji"].get_xdata())
    assert sizes == [4 << 10, 64 << 10, 512 << 10, 2 << 20]


def test_only_one_actor_without_a_sample_time_counts_by_size():
    left, _ = draw_sizes(sizes_data()).axes
    assert lines(left)["tianji"].get_ydata()[0] == pytest.approx(
        4096 / (4096 / 12e9 + 2e-6) / 1.1 / 1e6
    )


def test_times_by_actors_have_a_panel_per_sample_time_and_the_ideal():
    panels = draw_actors(actors_data()).axes
    assert [axes.get_title() for axes in panels] == [
        "sample time 0 ms", "sample time 1 ms", "sample time 10 ms",
    ]  # fmt: skip
    ideal = "ideal: messages x sample time / actors"
    assert ideal not in lines(panels[0])
    assert list(lines(panels[2])[ideal].get_ydata()) == pytest.approx([102, 51, 25.5])


def test_a_point_is_the_median_of_its_repeats_with_their_range():
    points = [
        {"transport": "pipe", "copying": True, "at": 2, "value": value} for value in (5, 1, 2)
    ]
    (series,) = to_series(points, "at", lambda point: point["value"])
    assert series.values == [(2, 1, 2, 5)]
    assert series.label == "pipe"


def span(name, start_s, end_s, **about):
    return Span(name, start_s, end_s, about)


def timeline(**more):
    """Ten versions of 100 ms each, checkpoints in two; the actor sleeps half the time."""
    actor, buffer, learner, arrows = [], [], [], []
    for v in range(10):
        t = v / 10
        actor += [span("infer", t, t + 0.02), span("step", t + 0.02, t + 0.05)]
        actor += [span("write", t + 0.05, t + 0.051), span("paced", t + 0.051, t + 0.1)]
        buffer += [span("receive", t + 0.05, t + 0.051)]
        learner += [span("publish", t, t + 0.01, version=v), span("update", t + 0.01, t + 0.09)]
        touches = (Touch("actor-0", t + 0.04), Touch("buffer", t + 0.05), Touch("learner", t + 0.1))
        arrows += [Arrow("item", touches)]
    learner += [span("save", 0.495, 0.496), span("save", 0.595, 0.596)]
    learner.sort(key=lambda s: s.start_s)
    spans = {"actor-0": actor, "buffer": buffer, "learner": learner, **more}
    shares = {"actor-0": Share(0.5, 0.5), "buffer": Share(0.01, 0.99), "learner": Share(1.0, 0.0)}
    shares |= {role: Share(0.9, 0.1) for role in more}
    return Timeline(spans, arrows, shares)


def test_the_window_is_some_steady_versions_without_a_checkpoint():
    window = choose(timeline(), None, None)
    assert window.length_s == pytest.approx(0.3 * 1.08)
    assert window.start_s == pytest.approx(0.6 - 0.3 * 0.04)


def test_the_window_can_be_asked_for():
    assert choose(timeline(), 0.1, 0.2) == pytest.approx(Window(0.1, 0.3))
    assert choose(timeline(), 0.9, 5.0) == Window(0.9, 1.0)
    for from_s, for_s in ((1.5, 0.1), (-1.0, 0.1), (0.5, 0.0)):
        with pytest.raises(UsageError, match=r"shows nothing: the trace goes from 0 to 1.000 s"):
            choose(timeline(), from_s, for_s)


def draw(found):
    view = look(found, Window(0.1, 0.395))
    return picture.draw(found, view, "a run").axes[0]


def texts(axes):
    return [text.get_text() for text in axes.texts if text.get_text()]


def test_every_role_has_a_row_with_its_idle_share_in_words():
    axes = draw(timeline(evaluator=[span("wait", 0.0, 1.0)]))
    rows = [label.get_text() for label in axes.get_yticklabels()]
    assert rows == ["actor-0", "buffer", "learner", "evaluator"]
    assert texts(axes) == [
        "idle 50 %", "waits for a grant: paced", "idle 99 %", "while others have their turn",
        "idle 0 %", "hardly ever waits", "idle 10 %", "waits for its time",
    ]  # fmt: skip


def test_many_actors_are_in_the_order_of_their_numbers():
    more = {f"actor-{i}": [span("write", 0.1, 0.2)] for i in (10, 9, 2)}
    rows = [label.get_text() for label in draw(timeline(**more)).get_yticklabels()]
    assert rows[:4] == ["actor-0", "actor-2", "actor-9", "actor-10"]


def test_arrows_are_those_within_the_window():
    arrows = [text for text in draw(timeline()).texts if text.arrow_patch is not None]
    assert len(arrows) == 2 * 2  # two items, each over two rows


def test_the_tasks_of_the_paper_have_their_numbers():
    legend = draw(timeline()).figure.legends[0]
    names = [text.get_text() for text in legend.get_texts()]
    assert names[:3] == ["① infer", "② simulate a step", "③ update"]
    assert "save" not in names
