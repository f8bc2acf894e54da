"""Text tables that change while they are read."""

import gzip
import os

import pytest

from qubayes import FormatError
from qubayes.data import read, text


@pytest.mark.parametrize("name", ["x.csv", "x.dat", "x.csv.gz"])
def test_a_file_that_becomes_shorter_while_it_is_read(tmp_path, monkeypatch, name):
    """The rows up to the cut are whole: only the size of the file tells that some are lost."""
    path = tmp_path / name
    rows = b"".join(b"%d %d\n" % (i % 3, i % 2) for i in range(3000))
    content = {"x.dat": b"A B\n3 2\n" + rows}.get(name, b"a,b\n" + rows.replace(b" ", b","))
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    half = len(path.read_bytes()) // 2
    half -= half % 4
    scan = text._Values.scan

    def truncate_and_scan(*arguments, **options):
        os.truncate(path, half)
        return scan(*arguments, **options)

    monkeypatch.setattr(text, "_BLOCK", 1000)
    monkeypatch.setattr(text._Values, "scan", truncate_and_scan)
    with pytest.raises(FormatError, match="became shorter while it was read"):
        read(path)
