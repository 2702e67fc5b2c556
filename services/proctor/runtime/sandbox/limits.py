"""What a program may use."""

from __future__ import annotations

from typing import Final, NamedTuple

CPU_S: Final = 3
WALL_S: Final = 20.0
MEMORY_BYTES: Final = 536_870_912
FOLDER_BYTES: Final = 8_388_608
FILE_BYTES: Final = 1_048_576
OPEN_FILES: Final = 32
OUTPUT_BYTES: Final = 1_048_576


class ProgramLimits(NamedTuple):
    """Bounds of one program. What goes past the first two is ended; the others are refused to it."""

    cpu_s: int = CPU_S
    wall_s: float = WALL_S
    """Several times the processor time: on a busy machine a good program waits for its turn."""
    memory_bytes: int = MEMORY_BYTES
    """Address space of its one process."""
    folder_bytes: int = FOLDER_BYTES
    """Of all that it writes into its folder, which is in memory and gone with it."""
    file_bytes: int = FILE_BYTES
    """Of one file."""
    open_files: int = OPEN_FILES
    output_bytes: int = OUTPUT_BYTES
    """Of what it gives back; what it prints goes nowhere."""

    def as_rlimits(self) -> dict[str, tuple[int, int]]:
        """The kernel's limits, soft and hard, under the names that Python has for them."""
        return {
            "RLIMIT_AS": (self.memory_bytes, self.memory_bytes),
            # A program that outlives the signal of the first is killed at the second.
            "RLIMIT_CPU": (self.cpu_s, self.cpu_s + 1),
            "RLIMIT_FSIZE": (self.file_bytes, self.file_bytes),
            "RLIMIT_NOFILE": (self.open_files, self.open_files),
            "RLIMIT_NPROC": (1, 1),
            "RLIMIT_CORE": (0, 0),
            "RLIMIT_MEMLOCK": (0, 0),
            "RLIMIT_MSGQUEUE": (0, 0),
        }


DEFAULT_LIMITS: Final = ProgramLimits()
