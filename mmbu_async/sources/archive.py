"""Zip archives read in place: the directory once, then each member by its offset, from any thread.

`zipfile` reads the directory (it knows zip64, both encodings of names, and archives with something in front),
but its handle has one position and one lock, so members are read here. Nothing is unpacked to disk.
"""

from __future__ import annotations

import os
import struct
import threading
import weakref
import zipfile
import zlib
from pathlib import Path

from mmbu_async.errors import DataError, ImageError

LARGEST = 512 * 1024 * 1024
"""Bytes of one member, unpacked. A few kilobytes can claim to be more."""

_ENTRY = struct.Struct("<QQQLH")
"""Offset of the local header, packed size, size, CRC-32, method: a member in 30 bytes, where zipfile's own
record takes half a kilobyte."""
_LOCAL_HEADER = struct.Struct("<4s22xHH")
_LOCAL_SIGNATURE = b"PK\x03\x04"
_ENCRYPTED = 0xFFFF
"""Stands for the method of an encrypted member."""


class PositionedFile:
    """Reads at an offset, from any thread. Closed when nobody holds it any more."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        self._lock = threading.Lock()
        weakref.finalize(self, os.close, self._descriptor)

    def read(self, count: int, offset: int) -> bytes:
        """Fewer bytes only where the file ends."""
        if hasattr(os, "pread"):
            return os.pread(self._descriptor, count, offset)
        with self._lock:
            os.lseek(self._descriptor, offset, os.SEEK_SET)
            return os.read(self._descriptor, count)


class ZipArchive:
    """The members of one archive. Memory: some 250 bytes a member, whatever their size."""

    def __init__(self, path: Path, name: str) -> None:
        """`name` is what messages call it. Raises DataError where it is no archive that can be read."""
        self.name = name
        self.unsafe = 0
        """Members whose names lead out of the archive: they cannot be asked for."""
        self._entries: dict[str, bytes] = {}
        try:
            self._file = PositionedFile(path)
            with zipfile.ZipFile(path) as archive:
                for member in archive.filelist:
                    self._add(member)
        except OSError as error:
            raise DataError(f"{path}: cannot be read ({error.strerror or error}).") from None
        except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error) as error:
            raise DataError(
                f"{path}: is no zip archive that can be read ({error}); get it again, or put its images into "
                "the folder beside the table."
            ) from None

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, member: str) -> bool:
        return member in self._entries

    def problem(self, member: str) -> str:
        """Why a member that is there cannot be read and what to do, '' where it can. Does not read it."""
        _, _, size, _, method = _ENTRY.unpack(self._entries[member])
        if method == _ENCRYPTED:
            return f"names an image that {self.name} holds encrypted; pack the archive without a password"
        if method not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            packing = f"packed by a method that is not read here ({method})"
            return (
                f"names an image that {self.name} holds {packing}; pack the archive with deflate, or plainly"
            )
        if size > LARGEST:
            return f"names a member of {self.name} of {size:,} bytes, which no image should have; take it out"
        return ""

    def read(self, member: str) -> bytes:
        """The member's bytes, its checksum compared. Raises ImageError naming archive and member."""
        if problem := self.problem(member):
            raise ImageError(f"{problem} ({member}).")
        offset, packed, size, checksum, method = _ENTRY.unpack(self._entries[member])
        try:
            header = self._file.read(_LOCAL_HEADER.size, offset)
            if len(header) < _LOCAL_HEADER.size:
                raise self._damaged(member, "it is cut off")
            signature, name_length, extra_length = _LOCAL_HEADER.unpack(header)
            if signature != _LOCAL_SIGNATURE:
                raise self._damaged(member, "the directory does not point to it")
            data = self._file.read(packed, offset + _LOCAL_HEADER.size + name_length + extra_length)
        except OSError as error:
            raise ImageError(f"{self.name}, {member}: cannot be read ({error.strerror}).") from None
        if len(data) < packed:
            raise self._damaged(member, "it is cut off")
        if method == zipfile.ZIP_DEFLATED:
            try:
                # One byte more than it should be: enough to see that it is too long.
                data = zlib.decompressobj(-zlib.MAX_WBITS).decompress(data, size + 1)
            except zlib.error:
                raise self._damaged(member, "it cannot be unpacked") from None
        if len(data) != size or zlib.crc32(data) != checksum:
            raise self._damaged(member, "its checksum is wrong")
        return data

    def _add(self, member: zipfile.ZipInfo) -> None:
        if member.is_dir():
            return
        name = member.filename.replace("\\", "/")
        if name[1:2] == ":" or not {"", ".."}.isdisjoint(name.split("/")):
            self.unsafe += 1
            return
        encrypted = member.flag_bits & 0x1
        self._entries[name] = _ENTRY.pack(
            member.header_offset,
            member.compress_size,
            member.file_size,
            member.CRC,
            _ENCRYPTED if encrypted else member.compress_type,
        )

    def _damaged(self, member: str, how: str) -> ImageError:
        return ImageError(f"{self.name}, {member}: is damaged ({how}); get the archive again.")
