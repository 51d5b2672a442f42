"""The interpreter itself: what it inherits, what it finds, what can be done to the runtime."""

from tests.sandbox.hostile.snippet import NO_HARM, NO_RESULT, OK, RAISED, Snippet


def _verdict(
    name: str, source: str, expected: str | tuple[str, ...] = OK, **more: object
) -> Snippet:
    return Snippet(name, source, expected, control=NO_HARM, **more)  # type: ignore[arg-type]


SNIPPETS = [
    Snippet(
        "environment",
        """
known = {"PATH", "LANG", "TZ", "HOME", "TMPDIR", "ADE_JOB_FOLDER", "LC_CTYPE"}
more = {name for name in os.environ if "SECRET" in name or "TOKEN" in name or "KEY" in name}
"harm" if more or "ade-secret" in str(dict(os.environ)) else "clean"
""",
        OK,
        value="clean",
    ),
    Snippet(
        "environment_of_c",
        """
libc.getenv.restype = ctypes.c_char_p
"harm" if libc.getenv(b"ADE_TEST_SECRET") else "clean"
""",
        OK,
        value="clean",
    ),
    _verdict(
        "inherited_descriptors",
        """
found = sorted(int(name) for name in os.listdir("/proc/self/fd"))
found if found[:4] != [0, 1, 2, 3] or len(found) > 5 else "four"
""",
        value="four",
    ),
    _verdict("nothing_to_read", "os.read(0, 10).decode()", value=""),
    _verdict(
        "inherited_signals",
        """
odd = [n for n in signal.valid_signals() if signal.getsignal(n) not in (signal.SIG_DFL, None)]
blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
sorted(set(map(int, odd)) - {2, 13, 15, 25} | set(map(int, blocked)))
""",
        value=[],
    ),
    _verdict("only_one_thread", "len(os.listdir('/proc/self/task'))", value=1),
    _verdict(
        "own_session",
        "[os.getsid(0) == os.getpid(), os.getpgid(0) == os.getpid()]",
        value=[True, True],
    ),
    _verdict(
        "shadowing_module",
        """
open("json.py", "w").write("raise SystemExit('shadowed')")
open("ade_engine.py", "w").write("raise SystemExit('shadowed')")
for name in [name for name in sys.modules if name.startswith("json")]:
    del sys.modules[name]
import json
json.dumps([1])
""",
        NO_RESULT,  # as in any script: its folder comes first
    ),
    _verdict("no_modules", "sys.modules.clear(); 3", (OK, RAISED)),
    _verdict(
        "replaced_modules",
        """
engine = [f"ade_engine.{name}" for name in ("run_entry", "channel", "describe_exception")]
for name in ("json", *engine, "os"):
    sys.modules[name] = None
3
""",
        value=3,
    ),
    _verdict(
        "no_builtins",
        "import builtins; [delattr(builtins, n) for n in ('open', 'len', 'isinstance', 'dict')]; 3",
        (
            OK,
            RAISED,
            "USER_CODE_ERROR/EXITED_WITHOUT_RESULT",
            "USER_CODE_ERROR/FAILED_WITHOUT_WORDS",
        ),
    ),
    _verdict(
        "tracing", "sys.settrace(lambda *a: None); sys.setprofile(lambda *a: None); 3", value=3
    ),
    _verdict(
        "audit_hook",
        "def hook(*a):\n    raise RuntimeError('no')\nsys.addaudithook(hook); 3",
        (OK, RAISED),
    ),
    _verdict("garbage", "import gc; gc.set_threshold(0); gc.unfreeze(); gc.collect(); 3", value=3),
    _verdict("something_left_in_builtins", "import builtins; builtins.left_here = 1; 3", value=3),
    _verdict(
        "something_found_in_builtins",
        "import builtins; [hasattr(builtins, 'left_here'), os.path.exists('companion')]",
        value=[False, False],
    ),
    _verdict(
        "its_own_file_only",
        "sorted(set(os.listdir('.')) - {'artifacts', 'tmp'})",
        value=["cell.py"],
    ),
    _verdict(
        "ordinary_work",
        """
import csv, decimal, json, re, tempfile, threading
open("a.txt", "w").write("x")
with open("artifacts/report.csv", "w", newline="") as file:
    csv.writer(file).writerows([[1, 2], [3, 4]])
with tempfile.NamedTemporaryFile("w+") as file:
    file.write("x"); file.seek(0)
    read = file.read()
seen = []
thread = threading.Thread(target=seen.append, args=(read,))
thread.start(); thread.join()
os.rename("a.txt", "b.txt"); os.stat("b.txt")
seen + [open("b.txt").read(), str(decimal.Decimal("1.1") + 1)]
""",
        value=["x", "x", "2.1"],
        artifacts=("b.txt", "report.csv"),
    ),
    _verdict(
        "ordinary_async",
        """
import asyncio
async def work():
    await asyncio.sleep(0.001)
    return await asyncio.to_thread(lambda: 5)
asyncio.run(work())
""",
        value=5,
    ),
    _verdict(
        "ordinary_processes",
        """
import subprocess
from concurrent.futures import ProcessPoolExecutor
done = subprocess.run(["/bin/echo", "hello"], capture_output=True, text=True)
with ProcessPoolExecutor(2) as workers:
    found = list(workers.map(abs, [-1, 2]))
[done.stdout, found]
""",
        at_landlock="SANDBOX_VIOLATION/OPERATION_DENIED",
        value=["hello\n", [1, 2]],
    ),
    _verdict(
        "copies_with_times",
        """
import shutil
open("a", "w").write("x"); shutil.copy2("a", "b"); os.chmod("b", 0o600); open("b").read()
""",
        at_landlock=OK,
        in_mode={"user-landlock": "SANDBOX_VIOLATION/OPERATION_DENIED"},
        value="x",
        artifacts=("a", "b"),
    ),
]
