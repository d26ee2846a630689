"""What the documentation says is run, parsed or looked up here."""

from __future__ import annotations

import json
import re
import runpy
import tomllib

import pytest

import tianji
from tests.docs import pages
from tests.docs.pages import DOCS, PAGES
from tianji.cli.main import VERBS, build_app, main
from tianji.cli.pages.closing import take_seeds
from tianji.cli.pages.hosts_plan import HostsOptions
from tianji.cli.pages.options import take
from tianji.cli.pages.simulate import take_options
from tianji.cli.verbs.compare import CompareOptions
from tianji.cli.verbs.sweep import SweepOptions, take_searches
from tianji.comparison.styles import style_contest
from tianji.config.files import list_presets, load_preset
from tianji.config.overrides import preset_and_assignments, resolve, resume_changes
from tianji.config.values import split_tokens
from tianji.observe.summary import build_summary
from tianji.sweep.request import make_request

WITH_PYTHON = [page for page in PAGES if pages.script(page)]
CHEAP = ("presets", "zoo", "programs", "doctor", "--version")
WORDS = (
    "step", "transition", "unroll", "episode", "row", "round", "item", "batch", "minibatch",
    "update", "version", "lag", "age", "ratio", "warm-up", "allowance", "grant", "paced", "slot",
    "lane", "stream", "board", "reduce", "gauge", "bell", "role", "worker", "group",
    "contribution", "world", "program", "plan", "engine", "preset", "run", "busy share",
    "time to target", "start-up", "token", "gather rule", "closed", "look-ahead point",
    "given times", "task", "style", "back-pressure",
)  # fmt: skip
OTHER_WORDS = ("rollout", "trajectory", "timestep", "train step", "replay ratio", "utilisation")


@pytest.fixture
def in_new_folder(tmp_path, monkeypatch):
    """As a reader's own folder: current, and first among the places of modules."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("TERM", "dumb")
    return tmp_path


@pytest.mark.parametrize("page", WITH_PYTHON, ids=pages.name)
def test_the_python_of_a_page_runs(page, in_new_folder, monkeypatch):
    if page.name != "README.md":
        monkeypatch.setattr(tianji, "train", pages.train_inline)
    for file, text in pages.files(page).items():
        (in_new_folder / file).write_text(text)
    (in_new_folder / "page.py").write_text(pages.script(page))
    runpy.run_path("page.py", run_name="__main__")


def test_the_first_environment_of_the_readme_is_short():
    first = next(b for b in pages.blocks(pages.ROOT / "README.md") if b.language == "python")
    assert len([line for line in first.text.splitlines() if line.strip()]) < 20


@pytest.mark.parametrize("page", PAGES, ids=pages.name)
def test_every_command_of_a_page_parses(page, monkeypatch):
    monkeypatch.syspath_prepend(str(pages.NEW_ALGORITHM))
    for words in pages.commands(page):
        parse(words)
    for words in pages.mentions(page):
        # In running text an option may stand for itself, without a value.
        parse([*words, "1"] if words[-1].startswith("--env") else words)


def parse(words):
    """Fail where `tianji WORDS` would be refused before anything starts."""
    words = [word for word in words if word != "--json"]
    if words[0] in ("--help", "--version"):
        return
    verb, *rest = words
    assert verb in VERBS, f"`tianji {verb}` does not exist"
    if "--help" in rest:
        rest.remove("--help")
    if verb in ("train", "plan"):
        flags = ["--fresh"] if verb == "plan" else []
        words = [w for w in rest if not w.endswith(".yaml") and w not in flags]
        preset, asked = preset_and_assignments(words)
        taken = take_seeds(asked) if verb == "train" else take(HostsOptions, asked, "tianji plan")
        resolve(preset, taken[1])
    elif verb == "compare" and rest:
        preset, asked = preset_and_assignments(rest)
        options, asked = take(CompareOptions, asked, "tianji compare")
        style_contest(preset, options.names(), 1, take_seeds(asked)[1], "")
    elif verb == "sweep" and rest:
        preset, asked = preset_and_assignments(rest)
        searched, asked = take_searches(asked)
        make_request(preset, searched, take(SweepOptions, asked, "tianji sweep")[1], 1)
    elif verb == "simulate":
        preset, asked = preset_and_assignments(rest)
        resolve(preset, take_options(asked)[1])
    elif verb == "resume":
        resume_changes(tianji.make_config("cartpole-ppo"), split_tokens(rest)[1])
    elif rest or verb not in ("compare", "sweep", "eval", "export"):
        build_app().parse_args([verb, *rest], exit_on_error=False, print_error=False)


def test_a_command_that_does_not_exist_is_noticed():
    for words in (["trian"], ["train", "--gama", "1"], ["eval", "RUN", "--episode", "3"]):
        with pytest.raises(Exception, match=r"exist|Unknown"):
            parse(words)


def cheap_commands():
    every = [tuple(words) for page in PAGES for words in pages.commands(page)]
    return sorted({words for words in every if words[0] in CHEAP and "my_module" not in str(words)})


@pytest.mark.parametrize("words", cheap_commands(), ids=" ".join)
def test_a_cheap_command_runs(words, in_new_folder):
    (in_new_folder / "chase.py").write_text(chase_module())
    assert main(words) == 0


def chase_module():
    """The first block of the README, as the file that it speaks of."""
    first = next(b for b in pages.blocks(pages.ROOT / "README.md") if b.language == "python")
    return first.text


def test_the_mistakes_shown_for_train_are_the_ones_it_tells(capfd, in_new_folder):
    text = (DOCS / "commands/train.md").read_text()
    command, told = re.search(r"\$ tianji (.+?)\n(.+?)```", text, re.DOTALL).groups()
    assert main([*command.split(), "--json"]) == 2
    assert json.loads(capfd.readouterr().out)["error"] == told.strip()


@pytest.mark.parametrize("page", PAGES, ids=pages.name)
def test_every_relative_link_resolves(page):
    missing = [link for link in pages.links(page) if not (page.parent / link).exists()]
    assert missing == []


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=pages.name)
def test_what_a_page_takes_from_the_sources_is_there(page, monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    generate = __import__("generate")
    assert not generate.MARKER.search(generate.on_page_markdown(page.read_text()))


def test_the_glossary_covers_the_words():
    rows = re.findall(r"^\| ([^|]+) \|", (DOCS / "glossary.md").read_text(), re.MULTILINE)
    assert [word for word in WORDS if word not in rows] == []


def test_no_page_uses_another_word_for_the_same_thing():
    others = re.compile(rf"\b({'|'.join(OTHER_WORDS)})s?\b", re.IGNORECASE)
    used = {
        pages.name(page): others.findall(pages.prose(page))
        for page in PAGES
        if page.name != "glossary.md"
    }
    assert {page: words for page, words in used.items() if words} == {}


def test_the_python_reference_has_every_public_name():
    reference = (DOCS / "reference/python.md").read_text()
    assert [name for name in tianji.__all__ if f"<!-- api: {name} -->" not in reference] == []


def test_every_key_of_the_summary_is_explained(tmp_path):
    explained = (DOCS / "concepts/observing.md").read_text()
    keys = build_summary(tianji.make_config("cartpole-ppo"), tmp_path, {})
    assert [key for key in keys if f"`{key}`" not in explained] == []


def test_the_readme_has_at_most_1000_words():
    assert len((pages.ROOT / "README.md").read_text().split()) <= 1000


def test_the_presets_page_lists_every_preset_with_its_environment_target_and_time():
    page = (DOCS / "commands/presets.md").read_text()
    rows = re.findall(r"^\| `([\w-]+)`[^|]*\| ([^|]+) \| (\S+) \| ([^|]+) \|$", page, re.MULTILINE)
    assert sorted(row[0] for row in rows) == sorted(list_presets())
    for name, trains, target, time in rows:
        preset = load_preset(name)
        assert target == str(preset.config["target_return"]), name
        assert f"to a mean return of {target}" in preset.about, name
        assert f"{time} on two cores" in preset.about, name
        assert preset_env(preset) in trains, name


def preset_env(preset):
    """The id of the environment, also where a factory gets it as a keyword."""
    config = preset.config
    return config.get("env") or config["env_kwargs"]["id"]


def test_the_commands_page_lists_every_command():
    page = (DOCS / "commands/index.md").read_text()
    listed = re.findall(r"^\| \[`tianji (\w+)[^`]*`\]\((\w+)\.md\) \|", page, re.MULTILINE)
    assert sorted(listed) == sorted((verb, verb) for verb in VERBS)


def test_the_start_page_lists_every_extra():
    project = tomllib.loads((pages.ROOT / "pyproject.toml").read_text())["project"]
    rows = re.findall(r"^\| (`.+?`) \|", (DOCS / "index.md").read_text(), re.MULTILINE)
    listed = [extra for row in rows for extra in re.findall(r"`(\w+)`", row)]
    assert sorted(listed) == sorted(project["optional-dependencies"])


def test_every_command_and_algorithm_has_a_page():
    from tianji.algorithms.registry import BUILT_IN

    expected = [DOCS / f"commands/{verb}.md" for verb in VERBS]
    expected += [DOCS / f"algorithms/{algorithm}.md" for algorithm in BUILT_IN]
    assert [page for page in expected if not page.exists()] == []


@pytest.mark.parametrize("preset", ["cartpole-ppo", "rennala-nigt"])
def test_every_key_of_the_metrics_is_explained(preset, in_new_folder):
    explained = (DOCS / "concepts/observing.md").read_text()
    trained = tianji.train(preset, engine="inline", display="off", max_env_steps=1000)
    metrics = in_new_folder / trained.summary["run_dir"] / "metrics.jsonl"
    keys = json.loads(metrics.read_text().splitlines()[-1])
    assert [key for key in keys if not re.search(rf"`{key}[.`]", explained)] == []
    gathered = keys.get("gather", {})
    assert [key for key in gathered if not re.search(rf"`(gather)?\.{key}`", explained)] == []


PRESETS = {
    **{name: f"cartpole-{name}" for name in ("ppo", "dqn", "impala", "a3c", "gorila")},
    "sac": "pendulum-sac",
}
"""Of algorithms; the others have presets of their own names."""


@pytest.mark.parametrize("algorithm", [*PRESETS, "rennala-nigt", "afedpg", "rennala-pg"])
def test_every_metric_of_an_algorithm_is_explained_on_its_page(algorithm, in_new_folder):
    explained = (DOCS / f"algorithms/{algorithm}.md").read_text()
    if link := re.search(r"\]\(([\w-]+\.md)#metrics\)", explained):
        explained = (DOCS / "algorithms" / link[1]).read_text()
    settings = {"engine": "inline", "display": "off", "max_env_steps": 1200}
    trained = tianji.train(PRESETS.get(algorithm, algorithm), **settings)
    metrics = in_new_folder / trained.summary["run_dir"] / "metrics.jsonl"
    found = json.loads(metrics.read_text().splitlines()[-1])["learner"]
    assert found
    assert [name for name in found if f"`{name}`" not in explained] == []


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_no_page_has_the_marks_of_a_merge(page):
    lines = page.read_text().splitlines()
    assert [line for line in lines if line.startswith(("<<<<<<< ", ">>>>>>> "))] == []
