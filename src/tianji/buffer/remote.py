"""A buffer in a worker of its own: ServedBuffer is its end, RemoteBuffer the learner's.

    buffer --(batches: a batch, with the episodes that ended in it)--> learner
    buffer <--(feedback: finished at a version, with priorities; wants; questions)-- learner
    buffer --(answers: to a question; news)--> learner

The buffer takes a batch only when the learner wants one and the gate allows it, as if both were in
one process. No batch is on its way while the learner saves, so a checkpoint holds every item.
"""

from __future__ import annotations

import time
from typing import Any, Literal, NamedTuple, TypedDict

from tianji.buffer.interface import Progress
from tianji.buffer.role import Buffer
from tianji.channels.gauges import Gauge
from tianji.channels.memory import Bell
from tianji.channels.messages import MessageReceiver, MessageSender, copied
from tianji.records import BufferRecord
from tianji.types import Array, Batch, Episode, Stamp, joined

ANSWER_S = 0.1
"""A learner that waits for an answer shows this often that it is alive."""


class BatchMessage(TypedDict):
    """A batch, and what entered the store with it."""

    arrays: dict[str, Array]
    stamps: list[Stamp]
    num_items: int
    num_steps: int
    unique_steps: int
    keys: Array | None
    episodes: list[Episode]
    env_steps: int


class Finished(TypedDict):
    """The learner has published `version` from the batch that it had."""

    kind: Literal["finished"]
    version: int
    priorities: Array | None


class Begin(TypedDict):
    """The learner continues at this version; before it, the buffer does nothing."""

    kind: Literal["begin"]
    version: int


class Load(TypedDict):
    """The state of a checkpoint."""

    kind: Literal["load"]
    state: dict[str, Any]


class Ask(TypedDict):
    """`want`: the next batch, please. `withdraw`: not any more; the answer is whether there is
    none on its way. `state`, `last state`, `record`: questions. `end`: the run is over."""

    kind: Literal["want", "withdraw", "state", "last state", "record", "end"]


class Answer(TypedDict):
    """The answer to a question, or news for a person."""

    kind: Literal["answer", "news"]
    value: Any


class Entered(NamedTuple):
    """The episodes that ended in a batch's items, and their steps."""

    episodes: list[Episode]
    env_steps: int


class Told:
    """Keeps what entered the store until the batch is sent."""

    def __init__(self) -> None:
        self.entered = Entered([], 0)

    def add(self, episodes: list[Episode], env_steps: int) -> None:
        self.entered = Entered(episodes, env_steps)


class ServedBuffer:
    """The buffer's end: a role that serves its learner. `told` is the progress of that buffer."""

    def __init__(
        self,
        buffer: Buffer,
        told: Told,
        batches: MessageSender,
        feedback: MessageReceiver,
        answers: MessageSender,
    ) -> None:
        self._buffer = buffer
        self._told = told
        self._batches = batches
        self._feedback = feedback
        self._answers = answers
        self._batch: Batch | None = None
        """The batch that the learner has."""
        self._has_begun = False
        self._is_wanted = False
        self.is_over = False

    @property
    def due_ns(self) -> int:
        return self._buffer.due_ns

    def tick(self) -> bool:
        worked = self._listen()
        if not self._has_begun:
            return worked
        worked |= self._buffer.tick()
        worked |= self._offer()
        if not worked and self._answers.has_room() and (news := self._buffer.news()):
            self._answers.send(Answer(kind="news", value=news))
        return worked

    def _offer(self) -> bool:
        """Send the batch that the learner wants, when one is due."""
        if not self._is_wanted or (batch := self._buffer.take()) is None:
            return False
        self._batch, self._is_wanted = batch, False
        self._batches.send(
            BatchMessage(
                arrays={name: joined(array) for name, array in batch.arrays.items()},
                stamps=list(batch.stamps),
                num_items=batch.num_items,
                num_steps=batch.num_steps,
                unique_steps=batch.unique_steps,
                keys=batch.keys,
                episodes=self._told.entered.episodes,
                env_steps=self._told.entered.env_steps,
            )
        )
        return True

    def _listen(self) -> bool:
        """Do what the learner says; a question waits until its answer has room."""
        worked = False
        while self._answers.has_room() and (message := self._feedback.take()) is not None:
            self._obey(message)
            self._feedback.release()
            worked = True
        return worked

    def _obey(self, message: Any) -> None:
        said: Finished | Begin | Load | Ask = message
        if said["kind"] == "finished":
            assert self._batch is not None, "the learner has a batch"
            self._buffer.finish(self._batch, said["version"], copied(said["priorities"]))
            self._batch = None
        elif said["kind"] == "begin":
            self._buffer.continue_at(said["version"])
            self._has_begun = True
        elif said["kind"] == "load":
            self._buffer.load_state(copied(said["state"]))
        elif said["kind"] == "want":
            self._is_wanted = True
        elif said["kind"] == "end":
            self.is_over = True
        else:
            self._answers.send(Answer(kind="answer", value=self._answer(said["kind"])))

    def _answer(self, question: Literal["withdraw", "state", "last state", "record"]) -> Any:
        if question == "withdraw":
            self._is_wanted = False
            return self._batch is None
        if question == "record":
            return self._buffer.record()
        return self._buffer.state(is_last=question == "last state")


class RemoteBuffer:
    """The learner's end: what Buffer is to a learner in the same process."""

    due_ns = 0

    def __init__(
        self,
        progress: Progress,
        batches: MessageReceiver,
        feedback: MessageSender,
        answers: MessageReceiver,
        bell: Bell,
        gauges: memoryview[int],
    ) -> None:
        """bell, gauges: of the learner, which waits for answers."""
        self._progress = progress
        self._batches = batches
        self._feedback = feedback
        self._answers = answers
        self._bell = bell
        self._gauges = gauges
        self._has_asked = False
        """True while a batch is wanted that has not come."""
        self._news: list[str] = []

    def tick(self) -> bool:
        """Do nothing: the buffer's own worker moves it on."""
        return False

    def take(self) -> Batch | None:
        if not self._has_asked:
            self._has_asked = True
            self._feedback.send(Ask(kind="want"))
        message: Any = self._batches.take()
        if message is None:
            return None
        self._has_asked = False
        came: BatchMessage = message
        self._progress.add([Episode(*episode) for episode in came["episodes"]], came["env_steps"])
        return Batch(
            came["arrays"],
            tuple(Stamp(*stamp) for stamp in came["stamps"]),
            came["num_items"],
            came["num_steps"],
            came["unique_steps"],
            came["keys"],
        )

    def finish(self, batch: Batch, version: int, priorities: Array | None = None) -> None:
        self._batches.release()
        self._feedback.send(Finished(kind="finished", version=version, priorities=priorities))

    def withdraw(self) -> bool:
        if not self._has_asked:
            return True
        is_withdrawn: bool = self._ask("withdraw")
        self._has_asked = not is_withdrawn
        return is_withdrawn

    def continue_at(self, version: int) -> None:
        self._feedback.send(Begin(kind="begin", version=version))

    def load_state(self, state: dict[str, Any]) -> None:
        self._feedback.send(Load(kind="load", state=state))

    def state(self, is_last: bool = False) -> dict[str, Any]:
        state: dict[str, Any] = self._ask("last state" if is_last else "state")
        return state

    def record(self) -> BufferRecord:
        record: BufferRecord = self._ask("record")
        return record

    def news(self) -> list[str]:
        self._hear()
        news, self._news = self._news, []
        return news

    def end(self) -> None:
        """Let the buffer's worker end."""
        self._feedback.send(Ask(kind="end"))

    def _ask(self, question: Literal["withdraw", "state", "last state", "record"]) -> Any:
        """Return the answer. Should the buffer's worker be gone, the supervisor ends this one."""
        self._feedback.send(Ask(kind=question))
        while (answer := self._hear()) is None:
            self._bell.arm()
            if (answer := self._hear()) is not None:
                break
            self._bell.wait(ANSWER_S)
            self._gauges[Gauge.HEARTBEAT_NS] = time.monotonic_ns()
        return answer["value"]

    def _hear(self) -> Answer | None:
        """Return the answer, once it is there; news are set aside."""
        message: Any = self._answers.take()
        if message is None:
            return None
        answer: Answer = copied(message)
        self._answers.release()
        if answer["kind"] == "answer":
            return answer
        self._news.extend(answer["value"])
        return None
