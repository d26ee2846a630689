"""The process of one of several runs: an ordinary run on its share of the cores.

Takes      a JSON object on standard input: config, folder of all runs, cores, parent
Gives      a run folder with its summary; messages on standard error
Waits for  nothing
Unblocked  by nothing
Stops      as `tianji train` does: at the end of the run, or by SIGINT
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from tianji.config.run import RunConfig
from tianji.engines.worker import die_with_parent
from tianji.errors import TianjiError

INTERRUPTED = 130


def main() -> int:
    start = json.load(sys.stdin)
    die_with_parent(start["parent"])
    os.sched_setaffinity(0, start["cores"])
    from tianji.run import train_config

    try:
        train_config(RunConfig.model_validate(start["config"]), base=Path(start["base"]))
    except TianjiError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(main())
