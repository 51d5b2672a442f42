"""What an agent says of its host with each heartbeat: load, memory, disk, GPUs."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from ade import __version__

GPU_SECONDS = 5.0
GPU_FIELDS = ("name", "memory.total", "memory.used", "utilization.gpu")


def host_facts(folder: Path) -> dict[str, Any]:
    """Measure the host; `folder` is on the disk that matters. What is not known is left out."""
    facts: dict[str, Any] = {"version": __version__, "cpus": os.cpu_count()}
    facts["load"] = round(os.getloadavg()[0], 2)
    facts |= _memory()
    disk = shutil.disk_usage(folder)
    facts |= {"disk_total_bytes": disk.total, "disk_free_bytes": disk.free}
    if gpus := _gpus():
        facts["gpus"] = gpus
    return facts


def _memory(path: Path = Path("/proc/meminfo")) -> dict[str, int]:
    try:
        lines = [line.split() for line in path.read_text().splitlines()]
    except OSError:
        return {}
    known = {words[0]: int(words[1]) * 1024 for words in lines if len(words) > 1}
    names = {"memory_total_bytes": "MemTotal:", "memory_available_bytes": "MemAvailable:"}
    return {name: known[word] for name, word in names.items() if word in known}


def _gpus(program: str = "nvidia-smi") -> list[dict[str, Any]]:
    """Ask the driver for its GPUs; nothing where there is none."""
    if shutil.which(program) is None:
        return []
    query = [program, f"--query-gpu={','.join(GPU_FIELDS)}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(
            query, check=False, capture_output=True, text=True, timeout=GPU_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    rows = [line.split(", ") for line in done.stdout.splitlines()] if not done.returncode else []
    names = ("name", "memory_total_mib", "memory_used_mib", "load_percent")
    return [dict(zip(names, row, strict=True)) for row in rows if len(row) == len(names)]
