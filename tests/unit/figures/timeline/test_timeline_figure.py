"""Figure 1: what is kept of a run, and what is on the picture."""

import json

import pytest

from tests.unit.observe.accounts import make_gather, make_record
from tianji.config.files import save_config
from tianji.config.run import RunConfig
from tianji.errors import UsageError
from tianji.figures.files import read_data
from tianji.figures.timeline import picture, runs
from tianji.figures.timeline.excerpt import Excerpt, make_excerpt
from tianji.figures.timeline.window import Window, choose
from tianji.observe.run_log import JsonLines
from tianji.trace.flows import Share
from tianji.trace.read import Arrow, Span, Timeline, Touch


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


def excerpt(found):
    return make_excerpt(found, Window(0.1, 0.395), "a run")


def draw(found):
    return picture.draw([excerpt(found)]).axes[0]


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


def test_an_excerpt_that_was_kept_is_drawn_like_the_run_itself():
    found = excerpt(timeline())
    data = json.loads(json.dumps(found.to_data()))
    kept = Excerpt.from_data(data)
    assert kept.to_data() == data
    for before, after in zip(found.rows, kept.rows, strict=True):
        assert (after.role, after.idle_share) == (before.role, before.idle_share)
        assert after.why_idle == before.why_idle
        assert [span.name for span in after.spans] == [span.name for span in before.spans]
        ends = [(span.start_s, span.end_s) for span in before.spans]
        for span, (start_s, end_s) in zip(after.spans, ends, strict=True):
            assert (span.start_s, span.end_s) == pytest.approx((start_s, end_s), abs=2e-6)


def test_an_excerpt_holds_only_what_is_shown():
    found = excerpt(timeline())
    assert "295 ms of 1.0 s, 10 versions" in found.about
    assert all(s.end_s > 0.1 and s.start_s < 0.395 for row in found.rows for s in row.spans)
    assert found.items_end == "update"


def test_several_runs_are_drawn_below_each_other():
    data = {"points": [{"name": name, **excerpt(timeline()).to_data()} for name in ("a", "b")]}
    above, below = picture.draw_kept(data).axes
    assert above.get_title(loc="left").startswith("a\n")
    assert below.get_title(loc="left").startswith("b\n")
    assert len(above.get_yticklabels()) == 3


def kept_runs():
    return {run["name"].partition(":")[0]: run for run in read_data("tianji-1")["points"]}


@pytest.mark.parametrize("style", ["A3C", "Gorila"])
def test_actors_that_send_gradients_are_not_said_to_be_paced(style):
    reasons = [row["why_idle"] for row in kept_runs()[style]["rows"]]
    assert "waits for gradients to be applied" in reasons
    assert not any("paced" in reason for reason in reasons)


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (make_record(), "waits for a grant: paced"),
        (make_record(gather=make_gather(rule="every")), "waits for gradients to be applied"),
        (make_record(gather=make_gather(rule="barrier")), "waits for the next version"),
    ],
)
def test_idle_actors_have_the_reason_of_their_run(tmp_path, monkeypatch, record, reason):
    monkeypatch.setattr(runs, "read_trace", lambda _: timeline())
    monkeypatch.setattr(runs, "newest_trace", lambda _: None)
    save_config(RunConfig(algorithm="ppo"), tmp_path / "config.yaml")
    lines = JsonLines(tmp_path / "metrics.jsonl", pytest.fail)
    lines.append(record)
    lines.close()
    found = runs.excerpt_of(str(tmp_path))
    assert found.rows[0].why_idle == reason
    assert f"run {tmp_path.name}; " in found.about


def test_different_runs_that_are_kept_do_not_share_the_name_of_a_run():
    assert all("run cartpole" not in run["about"] for run in kept_runs().values())
