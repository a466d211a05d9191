"""Train as the program's console command does: `wgan_explorer.py [ARGUMENTS]`."""

import sys

sys.path.insert(0, "src")

from mnist_wgan import cli

if __name__ == "__main__":
    cli.train()
