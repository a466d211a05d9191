"""Functions that read files."""

from __future__ import annotations

READS = frozenset(
    """torch.load numpy.load numpy.loadtxt numpy.genfromtxt pandas.read_csv pandas.read_parquet pandas.read_pickle
    pandas.read_json pandas.read_excel pickle.load json.load safetensors.torch.load_file yaml.safe_load""".split()
)
"""Read a whole file."""
OPENS = frozenset("h5py.File zipfile.ZipFile tarfile.open lmdb.open sqlite3.connect numpy.memmap".split())
"""Open a file, of which the program then reads a part."""
