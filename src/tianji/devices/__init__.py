"""GPUs: finding them, CUDA graphs, pinned memory, waiting without spinning."""
