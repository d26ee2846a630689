"""Builds roles from the records of a program and the ends of its channels, for every engine."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache, partial
from typing import Any, TypeVar

import torch

from tianji.actor.rank import Rank
from tianji.actor.role import Actor
from tianji.algorithms.interface import Update, statistics_of
from tianji.algorithms.registry import load_algorithm
from tianji.buffer.gather.adding import Adding, AtLearner, FromHosts, KeptTotal
from tianji.buffer.gather.reducing import AllReduced
from tianji.buffer.gather.rules import GatherRule
from tianji.buffer.interface import BufferEnd
from tianji.buffer.interface import Progress as CountsProgress
from tianji.buffer.regroup import regrouped
from tianji.buffer.role import Buffer
from tianji.channels.board import board_bytes
from tianji.channels.contributions import (
    ContributionReader,
    ContributionWriter,
    answer_bytes,
    contribution_bytes,
)
from tianji.channels.gauges import Activity, Gauge
from tianji.channels.interface import Receiver
from tianji.channels.memory import to_pages
from tianji.channels.orders import BufferRows, Order
from tianji.channels.peers.interface import Joins
from tianji.channels.peers.timed import TimedPeers
from tianji.channels.reduce import GlooReduce
from tianji.channels.reports import Reports
from tianji.config.run import adds_gradients, mixes_groups, peers_of, team_of
from tianji.config.seeding import seed_for
from tianji.engines.assembly.build import Serve, build_actor, build_buffer, spans_of
from tianji.engines.assembly.ends import Ends, TeamMate, actor_rows, buffer_rows
from tianji.engines.assembly.gradients import (
    build_rank,
    gather_of,
    is_all_reduce,
    num_parameters,
    own_policy,
    published,
)
from tianji.engines.assembly.model import build_model, on_device
from tianji.engines.assembly.recording import RECORD, StartTimes, record_update
from tianji.engines.spec import RunSpec
from tianji.envs.build import build_world
from tianji.envs.mending import EnvFailures
from tianji.evaluator.role import Evaluator
from tianji.learner.ages import Ages
from tianji.learner.checkpoints import ActorStates, Checkpoints
from tianji.learner.combination import Combination, MixedState
from tianji.learner.episodes import EpisodeReports
from tianji.learner.group import Group, GroupGauges
from tianji.learner.joined import JoinedLearner
from tianji.learner.meeting import Meeting
from tianji.learner.progress import Progress
from tianji.learner.role import Learner
from tianji.learner.shared_mix import SharedMix
from tianji.learner.training import Training
from tianji.models.tensors import Snapshot, flatten
from tianji.programs.program import Program, Role
from tianji.records import Evaluation
from tianji.reports import BoardBytes, BuiltReport, EvaluationReport, Event
from tianji.trace.parts import (
    trace_acting,
    trace_batches,
    trace_checkpoints,
    trace_reader,
    trace_update,
    trace_world,
    trace_writer,
)
from tianji.trace.spans import Spans
from tianji.types import Clock

EPISODES_PERIOD_S = 0.1
"""Time between two reports of a group's finished episodes. In one process each version reports, so
that the run ends at the same one every time."""
AnyBuffer = TypeVar("AnyBuffer", bound=BufferEnd)


class Roles:
    """Builds roles one by one. In one process the training comes first: it makes the boards."""

    def __init__(
        self,
        spec: RunSpec,
        program: Program,
        ends: Ends,
        reports: Reports,
        now_ns: Clock = time.monotonic_ns,
    ) -> None:
        self._spec = spec
        self._program = program
        self._ends = ends
        self._reports = reports
        self._now_ns = now_ns
        self._gather = gather_of(spec)
        self._reduces: list[GlooReduce] = []
        self.spans: dict[str, Spans | None] = {}
        """Writers of each role's spans; None without a trace."""
        self.ranks: dict[str, Rank] = {}
        """The actors' ends of an all-reduce between processes."""
        self._total: KeptTotal | None = None
        self._model: torch.nn.Module | None = None
        """The learner's, if it is built here."""
        self.start_times = StartTimes()

    def open_spans(self, role: Role) -> Spans | None:
        self.spans[role.name] = spans = spans_of(self._spec, role)
        return spans

    def actor(self, role: Role, mends: bool, serve: Serve | None = None) -> Actor:
        """mends: an environment that fails is replaced; else its error ends the run. serve: lets a
        server infer; without it, the actor does."""
        spec, ends = self._spec, self._ends
        rows, spans = actor_rows(ends, role), self.open_spans(role)
        policy, open_sum = ends.policy_reader(role), None
        if self._gather is not None:
            open_sum = cache(partial(self._open_sum, role))  # a board has one writer
            if (reduce := self._open_reduce(role)) is not None:
                rank = build_rank(spec, role.index, reduce, open_sum, rows)
                self.ranks[role.name] = rank
                policy = own_policy(spec, policy, rank, rows.gauges)
            elif self._total is not None:
                policy = own_policy(spec, policy, self._total, rows.gauges)
        return build_actor(
            spec,
            role.index,
            partial(ends.sender, role),
            policy,
            rows,
            spans,
            self._now_ns,
            EnvFailures(role.name, spec.plan.envs_per_actor, rows.gauges, self._reports)
            if mends
            else None,
            open_sum,
            serve,
        )

    def _open_sum(self, role: Role, num_parameters: int) -> ContributionWriter:
        board = self._ends.sum_writer(role, contribution_bytes(num_parameters))
        return ContributionWriter(*board)

    def evaluator(self, role: Role) -> Evaluator:
        spec, config, policy = self._spec, self._spec.config, self._ends.policy_reader(role)
        model = build_model(spec)
        acting = load_algorithm(config.algorithm.name).build_acting(model, spec.spaces, config)
        build = partial(build_world, action_mask=spec.spaces.masked_by)
        worlds = {n: build(env, config.env_kwargs, 1) for n, env in spec.tasks.items()}
        if (spans := self.open_spans(role)) is not None:
            worlds = {name: trace_world(world, spans) for name, world in worlds.items()}
            acting, policy = trace_acting(acting, spans), trace_reader(policy, spans)

        def report(record: Evaluation) -> None:
            self._reports(EvaluationReport(kind="evaluation", role=role.name, record=record))

        def tell(text: str) -> None:
            self._reports(Event(kind="note", role=role.name, text=text))

        return Evaluator(
            config.evaluate,
            seed_for(config.seed, "evaluator") % 2**31,
            worlds,
            acting,
            Snapshot(model).read_beginning,
            policy,
            self._ends.gauges.rows[role.name],
            report,
            tell,
            self._now_ns,
        )

    def training(
        self,
        learner: Role,
        actor_states: ActorStates,
        open_buffer: Callable[[Progress], BufferEnd] | None = None,
    ) -> Training:
        """Build a group's learner, and what takes it to the end of the run.

        open_buffer: opens the learner's end of its buffer; without it, the buffer is built too."""
        spec, ends, now_ns = self._spec, self._ends, self._now_ns
        (buffer_role,) = self._program.of_kind("buffer")
        rows = GroupGauges(
            ends.gauges.rows[learner.name],
            ends.gauges.rows[buffer_role.name],
            [ends.gauges.rows[actor.name] for actor in self._program.of_kind("actor")],
        )
        spans = self.open_spans(learner)
        model = self._model = on_device(build_model(spec), spec, spec.plan.device)
        update = load_algorithm(spec.config.algorithm.name).build_update(
            model, spec.spaces, spec.config
        )
        orders = ends.supervision.rows[learner.name]
        meeting = self._meeting(learner, update, rows.learner, orders)
        if spec.plan.device != "cpu":
            with self.start_times.measure(RECORD):
                record_update(spec, model, update, partial(self._show_life, learner))
        snapshot = published(spec, model, update)
        self._tell_sizes(learner, model, snapshot.nbytes)
        policy = ends.policy_writer(snapshot.nbytes)
        episodes = None
        if spec.has_head or spec.reports_episodes:
            period_s = 0.0 if spec.config.engine == "inline" else EPISODES_PERIOD_S
            episodes = EpisodeReports(self._reports, period_s, now_ns)
        progress = Progress(
            spec.config,
            partial(_other_steps, meeting, orders),
            (lambda finished: None) if episodes is None else episodes.add,
        )
        buffer = open_buffer(progress) if open_buffer else self.buffer(progress, learner)
        steps: Update = update
        if spans is not None:
            steps, policy = trace_update(update, spans), trace_writer(policy, spans)
        parts = steps, ends.batches(self.traced(buffer)), policy, snapshot.write_to
        learning: Learner
        mixed = self._mixed(model, update)
        mixing = None if mixed is None else self._combination(mixed)
        if meeting is not None:
            shared = None
            if mixed is not None:
                shared = SharedMix(meeting.peers, mixed, spec.config.combine_every, mixing)
            learning = JoinedLearner(meeting, *parts, rows.learner, now_ns, shared, mixing)
        else:
            learning = Learner(*parts, lambda: progress.fraction, rows.learner, now_ns, mixing)
        ratio = spec.plan.target_ratio
        group = Group(model, update, buffer, learning, rows, ratio, now_ns)
        checkpoints = Checkpoints(
            spec.config.checkpoint,
            spec.run_dir,
            group,
            progress,
            self._reports,
            actor_states,
            self._for_these_actors,
            now_ns,
            spec.start_from,
        )
        if spans is not None:
            checkpoints = trace_checkpoints(checkpoints, spans)
        period_s = spec.config.observe.period_s
        return Training(
            group, progress, checkpoints, ends.gauges, self._reports, period_s, now_ns, episodes
        )

    def _mixed(self, model: torch.nn.Module, update: Update) -> MixedState | None:
        """Return what groups mix; None where they do not."""
        if not mixes_groups(self._spec.config):
            return None
        return MixedState(flatten(model), statistics_of(update))

    def _combination(self, state: MixedState) -> Combination | None:
        """Return what mixes this group with others; None in all learners of it but the first."""
        spec, ends, config = self._spec, self._ends, self._spec.config
        peers = peers_of(spec.group, config)
        if not peers:
            return None
        board = ends.peer_writer(spec.group, state.nbytes)
        posted = ends.peer_reader(spec.group, state.nbytes).version() + 1
        readers = {peer: ends.peer_reader(peer, state.nbytes) for peer in peers}
        patience_s = config.supervise.heartbeat_timeout_s
        ages = Ages(peers, config.combine_max_age, patience_s, ends.meeting_clock())
        return Combination(spec.group, state, board, readers, config.combine_every, posted, ages)

    def _meeting(
        self,
        learner: Role,
        update: Update,
        gauges: memoryview[int],
        orders: memoryview[int],
    ) -> Meeting | None:
        """Meet the learners with which this one adds up its gradients; None where it is alone."""
        spec = self._spec
        if not adds_gradients(spec.config):
            return None
        timeout_s = 2 * spec.config.supervise.heartbeat_timeout_s
        show_life = partial(self._show_life, learner)
        team = team_of(spec.group, spec.config)
        mate = TeamMate(spec.group, team, timeout_s, show_life, spec.address)
        peers = self._ends.peers(mate)
        assert peers.num_ranks == len(team), "the program has a wire for it"
        timed = TimedPeers(peers, gauges, self._now_ns)
        assert isinstance(update, Joins), "check_groups() has looked"
        update.join(timed)
        clock = self._ends.meeting_clock()
        if len(team) == spec.config.num_learners:
            return Meeting(timed, clock)
        return Meeting(timed, clock, lambda: orders[Order.OTHER_STEPS])

    def _show_life(self, role: Role) -> None:
        """Show that the worker of a role is alive while it starts."""
        for other in self._program.roles_in(role.worker):
            self._ends.gauges.rows[other.name][Gauge.HEARTBEAT_NS] = time.monotonic_ns()

    def buffer(self, progress: CountsProgress, taker: Role) -> Buffer:
        """taker: the role whose loop takes batches, which sums that were added up wake."""
        (role,) = self._program.of_kind("buffer")
        rows = buffer_rows(self._ends, role, self._program.of_kind("actor"))
        rows.gauges[Gauge.ACTIVITY] = Activity.RECEIVING
        receiver = self._ends.receiver()
        model_size = 0
        if self._gather is not None:
            model_size = num_parameters(self._model or build_model(self._spec))
        return build_buffer(
            self._spec,
            receiver,
            self._ends.replay_memory,
            progress,
            rows,
            self.open_spans(role),
            self._now_ns,
            partial(self._adding, taker, receiver, rows),
            model_size,
        )

    def traced(self, buffer: AnyBuffer) -> AnyBuffer:
        """Return the buffer, with its takes in the trace if it was built here and there is one."""
        (role,) = self._program.of_kind("buffer")
        spans = self.spans.get(role.name)
        return buffer if spans is None else trace_batches(buffer, spans)

    def _adding(
        self,
        taker: Role,
        receiver: Receiver,
        rows: BufferRows,
        rule: GatherRule,
        size: int,
    ) -> Adding:
        boards = self._ends.sum_readers(contribution_bytes(size))
        contributions = ContributionReader(boards)
        if hosts := self._ends.host_sums():
            return FromHosts(rule, contributions, hosts, receiver.wake_senders, size)
        at_learner = AtLearner(rule, contributions, size)
        reduce = self._open_reduce(taker)
        if reduce is not None:
            return AllReduced(rule, at_learner, reduce, rows.actors, receiver.wake_senders)
        if not is_all_reduce(self._gather):
            return at_learner
        self._total = KeptTotal(at_learner)
        return self._total

    def _open_reduce(self, role: Role) -> GlooReduce | None:
        # A rank that hangs is killed after half of it, which ends the collective at once.
        timeout_s = 2 * self._spec.config.supervise.heartbeat_timeout_s
        reduce = self._ends.reduce(role, timeout_s)
        if reduce is not None:
            self._reduces.append(reduce)
        return reduce

    def _tell_sizes(self, learner: Role, model: torch.nn.Module, policy_bytes: int) -> None:
        built: BoardBytes = {"policy_board_bytes": to_pages(board_bytes(policy_bytes))}
        if self._gather is not None:
            built["sum_boards_bytes"] = self._sum_boards_bytes(num_parameters(model))
        self._reports(BuiltReport(kind="built", role=learner.name, record=built))

    def _sum_boards_bytes(self, size: int) -> int:
        """Return the memory for sums on this host: of its actors, and of other hosts' totals."""
        program = self._program
        payloads = [contribution_bytes(size)] * len(program.actors_on(program.here)) + [
            answer_bytes(len(program.actors_on(host)), size) for host in program.other_hosts()
        ]
        return sum(to_pages(board_bytes(nbytes)) for nbytes in payloads)

    def _for_these_actors(self, saved: dict[str, Any]) -> dict[str, Any]:
        """Return a buffer's saved state as the present number of actors would have left it."""
        plan = self._spec.plan
        return regrouped(saved, plan.num_actors, plan.envs_per_actor)

    def close(self) -> None:
        for reduce in self._reduces:
            reduce.close()


def _other_steps(meeting: Meeting | None, orders: memoryview[int]) -> int:
    """Return the environment steps of the run that other groups count: those that learners have
    agreed on, which are the same for all, or else the newest that the head has told."""
    return orders[Order.OTHER_STEPS] if meeting is None else meeting.other_steps
