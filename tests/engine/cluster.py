"""A Dask cluster of two worker processes, for tests: prints its address and the ids of the processes, and waits."""

from __future__ import annotations

import logging
import sys

from distributed import Client, LocalCluster


def main() -> None:
    """Run until standard input ends."""
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster) as client,
    ):
        ids = client.run(lambda: __import__("os").getpid()).values()
        print(cluster.scheduler_address, *ids, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
