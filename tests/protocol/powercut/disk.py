"""What is on the disk when the power fails: a record of every sync, and images of a folder without the rest.

D1  A file's content is safe from its last fsync on, under whatever name; a name from the last fsync of its
    folder on; a name that was removed comes back if its folder was not synced since.
D2  What is not safe is lost, or there and empty, or there and full of zeros, or any mixture of these.
D3  At `start` everything is safe: the machine had been idle before.

Nothing here knows the engine: `os.fsync` is watched, and the one call that syncs a whole file system.
"""

import os
import random
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from unittest import mock

from omnigraph.storage.control import durability

Variant = Literal["lost", "empty", "zeros", "mixed"]
VARIANTS: tuple[Variant, ...] = ("lost", "empty", "zeros", "mixed")

_IS_LOCK = (".lock",)  # lock files are empty, and mean nothing once nobody holds them


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in a folder."""

    inode: int
    is_folder: bool


@dataclass(slots=True)
class Disk:
    """The safe part of one folder; `safe` keeps contents by hard links, so that inodes are never reused."""

    root: Path
    shadow: Path
    safe: dict[int, Path] = field(default_factory=dict)
    folders: dict[int, dict[str, Entry]] = field(default_factory=dict)
    syncs: int = 0

    def start(self) -> None:
        """Take everything as safe (D3)."""
        self.shadow.mkdir(parents=True, exist_ok=True)
        for folder, _, names in os.walk(self.root):
            self._take_folder(Path(folder))
            for name in names:
                self._take_file(Path(folder, name))

    def take_contents(self) -> None:
        """Take what is in every file as safe, and no name but those that are."""
        for folder, _, names in os.walk(self.root):
            for name in names:
                self._take_file(Path(folder, name))

    @contextmanager
    def watching(self, before_sync: Callable[[], None]) -> Iterator[None]:
        """Record every sync of a block instead of waiting for it; `before_sync` is called before each one."""
        real_fsync = os.fsync
        one_at_a_time = threading.RLock()  # some work syncs from several threads

        def fsync(descriptor: int) -> None:
            path = Path(f"/proc/self/fd/{descriptor}").readlink()
            if path == self.root.parent or path.is_relative_to(self.root):
                with one_at_a_time:
                    before_sync()
                    self._take(path)
            else:
                real_fsync(descriptor)

        def file_system_sync(_folder: Path) -> None:
            with one_at_a_time:
                before_sync()
                self.start()
                self.syncs += 1

        with (
            mock.patch.object(os, "fsync", fsync),
            mock.patch.object(durability, "_sync_file_system", file_system_sync),
        ):
            yield

    def is_safe(self, path: Path) -> bool:
        """Return whether a file would survive with its content and its name, the folders above included."""
        inode = path.stat().st_ino
        while path != self.root:
            entry = self.folders.get(path.parent.stat().st_ino, {}).get(path.name)
            if entry is None or entry.inode != path.stat().st_ino:
                return False
            path = path.parent
        return inode in self.safe or inode in self.folders

    def image(self, target: Path, variant: Variant, seed: int) -> int:
        """Write the folder as the power cut leaves it (D2); return how many files were not safe."""
        self._unsafe = 0
        draw = random.Random(seed)
        target.mkdir(parents=True)
        self._write_folder(self.root.stat().st_ino, self.root, target, variant, draw)
        return self._unsafe

    _unsafe: int = 0

    # Recording

    def _take(self, path: Path) -> None:
        self.syncs += 1
        if path.is_dir():
            self._take_folder(path)
        elif path.exists():
            self._take_file(path)

    def _take_folder(self, folder: Path) -> None:
        with os.scandir(folder) as entries:
            found = {entry.name: Entry(entry.inode(), entry.is_dir()) for entry in entries}
        self.folders[folder.stat().st_ino] = found

    def _take_file(self, path: Path) -> None:
        if path.name.endswith(_IS_LOCK):
            return
        inode = path.stat().st_ino
        if inode not in self.safe:
            link = self.shadow / str(inode)
            os.link(path, link)
            self.safe[inode] = link

    # Images

    def _write_folder(
        self, inode: int, now: Path | None, target: Path, variant: Variant, draw: random.Random
    ) -> None:
        safe = self.folders.get(inode, {})
        present = _entries(now)
        for name in sorted(safe.keys() | present.keys()):
            if name.endswith(_IS_LOCK):
                continue
            entry = self._survivor(safe.get(name), present.get(name), variant, draw)
            if entry is None:
                continue
            is_there = now is not None and present.get(name) == entry
            path = now / name if is_there and now is not None else None
            if entry.is_folder:
                (target / name).mkdir()
                self._write_folder(entry.inode, path, target / name, variant, draw)
            else:
                self._write_file(entry.inode, path, target / name, variant, draw)

    def _survivor(
        self, safe: Entry | None, present: Entry | None, variant: Variant, draw: random.Random
    ) -> Entry | None:
        """Return which state of a name the disk shows: the synced one, or one that happened to be written."""
        if safe == present:
            return safe
        is_written = {"lost": False, "mixed": draw.random() < 0.5}.get(variant, True)
        return present if is_written else safe

    def _write_file(
        self, inode: int, path: Path | None, target: Path, variant: Variant, draw: random.Random
    ) -> None:
        if inode in self.safe:
            os.link(self.safe[inode], target)
            return
        self._unsafe += 1
        if path is None:  # its name is safe and its content never was; another file has the name by now
            target.write_bytes(b"\0" * 16 if variant == "zeros" else b"")
            return
        size = path.stat().st_size
        kind = draw.choice(["empty", "zeros", "half", "whole"]) if variant == "mixed" else variant
        if kind == "whole":
            shutil.copyfile(path, target)
        elif kind == "half":
            target.write_bytes(path.read_bytes()[: size // 2])
        else:
            target.write_bytes(b"\0" * size if kind == "zeros" else b"")


def _entries(folder: Path | None) -> dict[str, Entry]:
    if folder is None or not folder.is_dir():
        return {}
    with os.scandir(folder) as entries:
        return {entry.name: Entry(entry.inode(), entry.is_dir()) for entry in entries}
