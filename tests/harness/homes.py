"""Processes whose home is a folder of the test's."""

from __future__ import annotations

import os
from pathlib import Path


def at_home(folder: Path, **more: str) -> dict[str, str]:
    """The environment of such a process. A JVM takes its home, hence the store's, from the password file."""
    options = f"{os.environ.get('JDK_JAVA_OPTIONS', '')} -Duser.home={folder}"
    return {**os.environ, "HOME": str(folder), "JDK_JAVA_OPTIONS": options, **more}
