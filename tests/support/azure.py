"""Microsoft's emulator of Azure's blob store, from the npm registry, where somebody has installed it.

`npm install azurite` in some folder, and AZURITE as the path of its `node_modules/azurite`.
"""

import base64
import hashlib
import hmac
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import httpx

from omnigraph.storage.control.uri import GraphRoot

# The account and key that the emulator documents; they open nothing else.
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
CONTAINERS = count(1)
_VERSION = "2021-08-06"


def program() -> Path | None:
    """Return the program of the emulator, if it is installed."""
    folder = os.environ.get("AZURITE", "")
    main = Path(folder, "dist", "src", "blob", "main.js")
    return main if folder and main.is_file() and shutil.which("node") else None


@contextmanager
def azure_server(main: Path) -> Iterator[str]:
    """Yield the endpoint of a server that ends with the block."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = ["--blobPort", "0", "--location", folder, "--skipApiVersionCheck", "--disableTelemetry"]
        server = subprocess.Popen(["node", str(main), *arguments], stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            for line in server.stdout:
                found = re.search(r"successfully listen(?:s|ing) on (http://\S+)", line)
                if found:
                    yield f"{found[1]}/{ACCOUNT}"
                    break
            else:
                raise AssertionError("the emulator ended by itself")
        finally:
            server.kill()
            server.wait()
            if server.stdout is not None:
                server.stdout.close()


def azure_settings_of(endpoint: str) -> dict[str, str]:
    """Return the settings of a process that uses a server."""
    return {
        "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
        "AZURE_STORAGE_ACCOUNT_KEY": KEY,
        "AZURE_STORAGE_ENDPOINT": endpoint,
        "AZURE_ALLOW_HTTP": "true",
    }


def new_azure_root(endpoint: str) -> GraphRoot:
    """Return a place for a graph in a container of its own."""
    container = f"container-{next(CONTAINERS)}"
    now = datetime.now(UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")
    headers = {"x-ms-date": now, "x-ms-version": _VERSION}
    lines = [f"{name}:{value}" for name, value in sorted(headers.items())]
    signed = "\n".join(["PUT", *[""] * 11, *lines, f"/{ACCOUNT}/{ACCOUNT}/{container}", "restype:container"])
    digest = hmac.new(base64.b64decode(KEY), signed.encode(), hashlib.sha256).digest()
    headers["Authorization"] = f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}"
    made = httpx.put(f"{endpoint}/{container}?restype=container", headers=headers, timeout=60)
    made.raise_for_status()
    return GraphRoot.parse(f"az://{container}/some/graph")
