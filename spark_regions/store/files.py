"""Data files below a local store directory. Other file systems are the driver's to clean."""

from __future__ import annotations

import os
import re
import shutil
import stat
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

ENTRY_NAME = re.compile(r"e[0-9a-f]{32}")


def local_path(location: str) -> Path | None:
    """The path of a `file:` URI or a plain path; None for another scheme."""
    parts = urlsplit(location)
    if parts.scheme == "":
        return Path(location)
    if parts.scheme == "file" and parts.netloc in ("", "localhost"):
        return Path(unquote(parts.path))
    return None


def file_uri(path: Path) -> str:
    """
    >>> file_uri(Path("/tmp/a b"))
    'file:///tmp/a%20b'
    """
    return "file://" + quote(str(path))


def make_private(directory: Path) -> None:
    """Create a directory and its missing parents, for the owner only.

    :raises OSError: it cannot be created or written
    """
    missing = []
    current = directory
    while not current.exists():
        missing.append(current)
        current = current.parent
    for each in reversed(missing):
        each.mkdir(mode=0o700, exist_ok=True)
    if not directory.is_dir():
        raise NotADirectoryError(f"{directory} is not a directory")
    if not os.access(directory, os.W_OK | os.X_OK):
        raise PermissionError(f"{directory} is not writable")


def delete_entry(data: Path, name: str) -> bool:
    """Delete one entry's directory below `data`; a symbolic link is removed, never followed.

    :returns: whether nothing of it is left
    """
    if not ENTRY_NAME.fullmatch(name):
        return False
    path = data / name
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        if stat.S_ISDIR(mode):
            # rmtree does not descend into links where the platform has openat, which is everywhere Spark's drivers run.
            shutil.rmtree(path)
        else:
            path.unlink()
    except OSError:
        return not os.path.lexists(path)
    return True


def leftovers(data: Path, known: frozenset[str], older_than: float) -> list[str]:
    """Entry directories without a record that were not touched since `older_than` (seconds since 1970)."""
    found = []
    try:
        with os.scandir(data) as listing:
            for each in listing:
                if not ENTRY_NAME.fullmatch(each.name) or each.name in known:
                    continue
                if each.stat(follow_symlinks=False).st_mtime < older_than:
                    found.append(each.name)
    except OSError:
        return found
    return found
