"""The numbers that the text of the first paper gives for its figures.

He et al., Highly Parallelized Reinforcement Learning Training with Relaxed Assignment Dependencies,
AAAI 2025 (arXiv 2502.20190).
"""

UP_TO_FASTER = 4.37
"""Abstract and introduction: convergence time of the systems compared with, over TianJi's, at most.
The text does not say which system, task or figure that is: 4.36 over RLlib is of figure 4 (c)."""
NODES = 8
"""Figures 4 (c) and (d): computing nodes, each with 40 cores."""
PPO_OVER_RLLIB = 4.36
PPO_OVER_XINGTIAN = 2.95
"""Figure 4 (c): time of PPO on CartPole to a mean return of 300, over TianJi's, at most."""
DQN_TIME_OVER_XINGTIAN = 1.6
DQN_THROUGHPUT_OVER_XINGTIAN = 7.13
"""Figure 4 (c): DQN on Pong with 8 nodes."""
SATURATED_ACTORS = {0.001: 4, 0.01: 16}
"""Figure 5 (b): the actors at which communication is the bottleneck, by sample time in seconds."""
SATURATED = {0.001: "beyond 4 actors", 0.01: "with 16"}
"""The same in the words of the text."""
ETHERNET_MB_PER_S = 125.0
INFINIBAND_MB_PER_S = 12_500.0
FALLING_FROM_BYTES = 2048 << 10
"""Figure 5 (d): bandwidths, and the message size after which throughput on InfiniBand falls."""
SMALL_BALANCE_ACTORS = 4
LARGE_BALANCE_ACTORS = 16
"""Figures 6 (a) and (b): the actors at which production and consumption are equal."""
