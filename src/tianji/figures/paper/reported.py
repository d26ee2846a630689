"""All figures of the first paper: what its text reports, and how ours differ."""

from __future__ import annotations

from tianji.figures.paper import strategy, training, transfer
from tianji.figures.paper.numbers import (
    DQN_THROUGHPUT_OVER_XINGTIAN,
    DQN_TIME_OVER_XINGTIAN,
    ETHERNET_MB_PER_S,
    FALLING_FROM_BYTES,
    INFINIBAND_MB_PER_S,
    LARGE_BALANCE_ACTORS,
    NODES,
    PPO_OVER_RLLIB,
    PPO_OVER_XINGTIAN,
    SATURATED,
    SMALL_BALANCE_ACTORS,
    UP_TO_FASTER,
)
from tianji.figures.paper.record import NO_NUMBERS, Reported

_SHORT, _LONG = SATURATED.values()

REPORTED: dict[str, Reported] = {
    "tianji-1": Reported(
        "Gorila, SEED, A3C and Ape-X have many idle blocks, because components wait for each "
        f"other's data; TianJi has hardly any. {NO_NUMBERS}",
        training.idle_roles,
        "The paper draws schematic timelines of five architectures. Ours are recorded traces of "
        "our own engines. An actor that is paced is idle on purpose: more data would only be "
        "older when it is used.",
    ),
    "tianji-4a": Reported(
        "On one A100 with 40 cores TianJi learns Pong faster than Ape-X (clipped rewards within "
        f"one life). {NO_NUMBERS} The abstract has a convergence up to {UP_TO_FASTER} times as "
        "fast as that of related systems, and the text does not say which one and on which task.",
        training.returns_on_pong,
        "Ours are points of whole games, with few cores, a GPU that several runs shared, and our "
        "own Ape-X on the same network and transport. It uses every step more often than DQN in "
        "its serial ratio, and its priorities do not make the buffer wait, as those of the "
        "paper's Ape-X do.",
    ),
    "tianji-4b": Reported(
        "TianJi makes much more of the machine than Ape-X, whose prioritised replay makes the "
        f"buffer wait. {NO_NUMBERS}",
        training.throughput_on_pong,
        "Our DQN keeps the serial ratio, and neither of its sides is the bottleneck all the time: "
        "actors, inference server and learner share a few cores. Our Ape-X runs free, and its "
        "learner is the bottleneck, which trains as often as it can. Throughput of training alone "
        "therefore says little about learning.",
    ),
    "tianji-4c": Reported(
        f"On {NODES} nodes of 40 cores PPO on CartPole reaches 300 up to {PPO_OVER_RLLIB} times as "
        f"fast as RLlib and {PPO_OVER_XINGTIAN} times as XingTian; DQN on Pong "
        f"{DQN_TIME_OVER_XINGTIAN} times as fast as XingTian, with {DQN_THROUGHPUT_OVER_XINGTIAN} "
        "times its throughput. Its text gives no seconds.",
        training.times_by_groups,
        "Ours is one machine where the paper has eight, and DQN learns CartPole where the paper "
        "has Pong. XingTian's training was not run. Runs of one group, which combines nothing, are "
        "averaged for each seed; a seed with a run that does not reach the target counts as never. "
        "Points of several machines are simulated.",
    ),
    "tianji-4d": Reported(
        f"On {NODES} nodes TianJi's returns are well above those of XingTian and RLlib, at a much "
        f"higher throughput. {NO_NUMBERS}",
        training.returns_by_groups,
        "Returns are real runs of PPO on CartPole with the groups of one machine, compared with "
        "each other only; bars of several machines are simulated and hatched.",
    ),
    "tianji-5a": Reported(
        "With one node and one actor TianJi moves data faster than XingTian for all message "
        f"sizes. {NO_NUMBERS}",
        transfer.sizes,
        "Same experiment, another machine. The authors' code sends through MPI; ours writes into "
        "shared memory, so that one core's memory copy is the limit. The channels of XingTian and "
        "of the authors' code were measured on such a machine on another day.",
    ),
    "tianji-5b": Reported(
        "With messages of 512 KB communication is the bottleneck "
        f"{_SHORT} at a sample time of 0.001, and {_LONG} at 0.01 (seconds, "
        "presumably); TianJi is below XingTian everywhere. Its text gives no collection times.",
        transfer.actors,
        "Receiving costs us a few microseconds, because the buffer keeps the slot instead of "
        "copying it; so we meet no bottleneck with as many actors (equation-1 shows 16).",
    ),
    "tianji-5c": Reported(
        "With actors spread evenly over 4 nodes TianJi's collection time is below XingTian's in "
        f"all cases. {NO_NUMBERS}",
        transfer.hosts,
        "The hosts are network namespaces of one machine that share its cores, and the links are "
        "encrypted: at the short sample time these cores are the limit, where the paper's nodes "
        "have 40 each. XingTian between hosts was not measured.",
    ),
    "tianji-5d": Reported(
        f"On Ethernet ({ETHERNET_MB_PER_S:g} MB/s) throughput rises with the size and approaches "
        f"the bandwidth; on InfiniBand ({INFINIBAND_MB_PER_S / 1e3:g} GB/s) TianJi goes beyond, "
        f"and falls after {FALLING_FROM_BYTES >> 10} KB, because messages take longer to generate.",
        transfer.link,
        "A limited line between two namespaces of one machine stands for Ethernet; without a "
        "limit the cores are the limit, which is no InfiniBand. Our messages are generated once, "
        "so that their size costs nothing but the transfer.",
    ),
    "tianji-6a": Reported(
        "DQN on CartPole: production grows with the actors, reception equals it, and beyond "
        f"{SMALL_BALANCE_ACTORS} actors the learner is the bottleneck. Its text gives no rates.",
        strategy.scaling,
        "The paper's production goes on growing beyond the balance; ours is paced, so that what "
        "is produced is trained on. Environments, networks and cores differ, and with them the "
        "number of actors that one learner can use.",
    ),
    "tianji-6b": Reported(
        "With more cores for the learner and a larger batch the balance moves from "
        f"{SMALL_BALANCE_ACTORS} to {LARGE_BALANCE_ACTORS} actors; beyond, reception and training "
        "fall below production. Its text gives no rates.",
        strategy.scaling,
        "The balance moves the same way, on a machine with fewer cores than the paper's nodes "
        "(40). The simulation has its costs from a few roles alone; what more of them cost each "
        "other in caches, memory and shared cores is not in it, and so it is above the runs.",
    ),
    "tianji-6c": Reported(
        "Groups of the balanced size let reception and training grow linearly with the actors. "
        f"{NO_NUMBERS}",
        training.rates_by_groups,
        "Groups that average or gossip their parameters grow linearly in the simulation, as in "
        "the paper. Groups that add up gradients are not drawn: there, every update waits for all. "
        "Real points are filled, simulated ones hollow; both stand at the same number of groups.",
    ),
    "tianji-6d": Reported(
        "PPO with 16 cores: the planned mapping (L2A8-C16; the text says 2 learners and 4 actors) "
        "and fresh samples (1:1 against 1:8) learn considerably faster than a random mapping "
        f"(L1A14-C16) and stale samples. {NO_NUMBERS}",
        strategy.ablation,
        "Fewer cores, and one learner where the paper's plan has two.",
    ),
    "equation-1": Reported(
        "T_c = (T_sp + T_sd) N_s if (T_s + T_sd) / N_A > T_rv, else T_rv N_s. The text says that "
        "actors shorten the time linearly, so that the first case must be divided by N_A. The "
        "paper compares it with no measurement.",
        transfer.equation,
        "On few cores senders and receiver share processors, which the equation does not know: "
        "without a sample time the processors are the limit, and a third term, the processor time "
        "of a message over the cores, is needed.",
    ),
}
