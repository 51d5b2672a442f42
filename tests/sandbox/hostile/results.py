# ruff: noqa: E501 - snippets are as long as they are
"""Results, outputs and exceptions that mislead, flood or break their reader."""

from tests.sandbox.hostile.snippet import (
    BAD_RESULT,
    BY_SIGNAL,
    NO_HARM,
    NO_MODULE,
    NO_RESULT,
    OK,
    OUTPUT,
    RAISED,
    RESULT,
    WORDLESS,
    Snippet,
)

ONLY_A_VERDICT = NO_HARM


def _verdict(name: str, source: str, expected: str | tuple[str, ...], **more: object) -> Snippet:
    return Snippet(name, source, expected, control=ONLY_A_VERDICT, **more)  # type: ignore[arg-type]


FRAME = """
import json
def frame(words):
    os.write(3, json.dumps(words).encode() + b"\\n")
"""

SNIPPETS = [
    _verdict("exit_0_without_a_result", "os._exit(0)", NO_RESULT),
    _verdict("sys_exit_0", "sys.exit(0)", OK),
    _verdict("sys_exit_of_an_object", "sys.exit(object())", NO_RESULT),
    _verdict("closed_descriptors", "os.closerange(0, 60); 1", (NO_RESULT, WORDLESS)),
    _verdict("closed_stdout", "sys.stdout.close(); os.close(1); 5", OK, value=5),
    _verdict("replaced_stdout", "sys.stdout = None; sys.stderr = 3; 5", OK, value=5),
    _verdict("forged_success_then_exit", FRAME + "frame({'result': 1}); os._exit(0)", OK, value=1),
    _verdict("forged_success_then_error", FRAME + "frame({'result': 1}); 1 / 0", RAISED),
    _verdict("forged_success_then_exit_1", FRAME + "frame({'result': 1}); os._exit(1)", NO_RESULT),
    _verdict("forged_success_then_crash", FRAME + "frame({'result': 1}); os.abort()", BY_SIGNAL),
    _verdict("two_results", FRAME + "frame({'result': 1}); 2", BAD_RESULT),
    _verdict("many_words", FRAME + "[frame({'word': i}) for i in range(99)]; 2", (NO_RESULT, OK)),
    _verdict(
        "forged_internal_error",
        FRAME + "frame({'setup_error': 'the layers fell'}); os._exit(70)",
        NO_RESULT,
    ),
    _verdict(
        "forged_internal_error_beside_a_result",
        FRAME + "frame({'setup_error': 'the layers fell'}); 1",
        (OK, NO_RESULT),
    ),
    *(
        _verdict(
            f"malformed_failure_{number}",
            FRAME + f"frame({{'failure': {words}}}); os._exit(1)",
            expected,
        )
        for number, (words, expected) in enumerate(
            (
                ("5", WORDLESS),
                ("None", WORDLESS),
                ("{}", WORDLESS),
                ("{'type': 5}", WORDLESS),
                ("{'type': 'X', 'bases': 5}", RAISED),
                ("{'type': 'X', 'bases': {'a': 1}, 'errno': [1]}", RAISED),
                ("{'type': 'X', 'errno': {}, 'line': 'x', 'module': []}", RAISED),
                ("{'exit': 'x'}", NO_RESULT),
                ("{'result_not_json': [1]}", BAD_RESULT),
            )
        )
    ),
    _verdict("garbage_on_the_line", "os.write(3, os.urandom(5000) + b'\\n'); 4", OK, value=4),
    _verdict("unended_line", "os.write(3, b'{' * 1000); os._exit(0)", NO_RESULT),
    _verdict("endless_line", "while True: os.write(3, b'x' * 65536)", RESULT),
    _verdict("deeply_nested_line", "os.write(3, b'[' * 100000 + b'\\n'); 4", OK, value=4),
    _verdict("long_number_on_the_line", "os.write(3, b'9' * 100000 + b'\\n'); 4", OK, value=4),
    _verdict(
        "storm_of_progress",
        FRAME + 'for i in range(20000): os.write(3, b\'{"progress": {"done": 1}}\\n\')\n5',
        OK,
        value=5,
    ),
    _verdict(
        "descriptors_on_the_line",
        """
import array
line = socket.socket(fileno=os.dup(3))
for _ in range(2):
    line.sendmsg([b"\\n"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0] * 20))])
7
""",
        OK,
        value=7,
    ),
    _verdict(
        "patched_writer",
        """
import json
json.dumps = lambda *a, **k: '{"result": 1}\\n{"result": 2}'
1
""",
        BAD_RESULT,
    ),
    _verdict(
        "patched_channel",
        """
from ade_engine.channel import Channel
Channel._send = lambda self, line: None
1
""",
        NO_RESULT,
    ),
    _verdict("patched_exit", "os._exit = lambda status: None; 5", (OK, NO_RESULT)),
    _verdict(
        "patched_exit_in_a_loop",
        "def stay(status):\n    time.sleep(9)\nos._exit = stay; 5",
        "RESOURCE_LIMIT/TIMED_OUT",
        limits={"timeout_ms": 500},
    ),
    _verdict(
        "atexit",
        FRAME + "import atexit; atexit.register(frame, {'result': 2}); 1",
        BAD_RESULT,
    ),
    _verdict(
        "weakref_at_the_end",
        FRAME
        + """
import weakref
class Kept: pass
kept = Kept()
weakref.finalize(kept, frame, {"result": 2})
1
""",
        BAD_RESULT,
    ),
    # --- values ---------------------------------------------------------------------------------
    _verdict("huge_result", "'x' * (1 << 20)", RESULT),
    _verdict("result_at_the_bound", "'x' * 200_000", OK),
    _verdict("cyclic_result", "a = []; a.append(a); a", BAD_RESULT),
    _verdict("cyclic_dictionary", "a = {}; a['a'] = a; a", BAD_RESULT),
    _verdict("unpicklable_result", "lambda: 1", OK),
    _verdict(
        "wide_result",
        "b = []\nfor _ in range(40): b = [b, b]\nb",
        ("RESOURCE_LIMIT/MEMORY_LIMIT", "RESOURCE_LIMIT/CPU_LIMIT"),
        limits={"cpu_ms": 500},
    ),
    _verdict("long_number", "10 ** 6000", BAD_RESULT),
    _verdict("odd_numbers", "[float('nan'), float('inf'), -0.0]", OK, value=[None, None, -0.0]),
    _verdict("odd_keys", "{1: 2, None: 3, (1,): 4}", OK, value={"1": 2, "None": 3, "(1,)": 4}),
    _verdict("hostile_repr", "class A:\n    def __repr__(self): raise ValueError('x')\nA()", OK),
    _verdict("hostile_str", "class S(str):\n    def __str__(self): return 5\nS('x')", (OK, RAISED)),
    _verdict(
        "hostile_items",
        "class D(dict):\n    def items(self): return iter(lambda: ('a', 1), 0)\nD()",
        ("RESOURCE_LIMIT/CPU_LIMIT", "RESOURCE_LIMIT/MEMORY_LIMIT"),
        limits={"cpu_ms": 300},
    ),
    _verdict("hostile_module_name", "class A: pass\nA.__module__ = 5\nA()", (OK, RAISED)),
    _verdict(
        "hostile_isoformat",
        "class A:\n    def isoformat(self): return A()\nA()",
        (OK, BAD_RESULT, RAISED),
    ),
    _verdict("surrogates_in_the_result", "'\\ud800 \\udfff'", OK),
    _verdict("zeros_in_the_result", "'a\\0b'", OK, value="a\0b"),
    # --- outputs --------------------------------------------------------------------------------
    _verdict("endless_stdout", "while True: print('x' * 4000)", OUTPUT),
    _verdict("endless_stderr", "while True: sys.stderr.write('x' * 4000)", OUTPUT),
    _verdict("endless_stdout_by_descriptor", "while True: os.write(1, bytes(65536))", OUTPUT),
    _verdict("much_stdout", "print('x' * 500_000); 1", OK, value=1),
    _verdict("surrogates_in_the_output", "print('\\ud800'); 1", OK, value=1),
    _verdict("zeros_in_the_output", "print('a\\0b'); 1", OK, value=1),
    _verdict("bytes_in_the_output", "os.write(1, bytes(range(256))); 1", OK, value=1),
    _verdict("fake_result_in_the_output", "print('{\"result\": 2}'); 1", OK, value=1),
    _verdict(
        "storm_of_warnings",
        "import warnings; warnings.simplefilter('always')\nfor i in range(2000): warnings.warn('x' * 100)\n1",
        OK,
        value=1,
    ),
    # --- exceptions -----------------------------------------------------------------------------
    _verdict("exception", "1 / 0", RAISED),
    _verdict("missing_module", "import no_such_module_here", NO_MODULE),
    _verdict("bad_syntax", "def (", RAISED),
    _verdict("deep_recursion", "def f(): f()\nf()", RAISED),
    _verdict(
        "deep_recursion_in_c",
        "sys.setrecursionlimit(10**9)\nclass A:\n    def __getattr__(self, n): return repr(self.x)\n    __repr__ = lambda self: str(self.y)\nrepr(A())",
        (BY_SIGNAL, RAISED, "RESOURCE_LIMIT/MEMORY_LIMIT"),
    ),
    _verdict("huge_message", "raise ValueError('x' * (10 << 20))", RAISED),
    _verdict(
        "endless_chain",
        "e = None\nfor i in range(3000):\n    n = ValueError(str(i)); n.__context__ = e; e = n\nraise e",
        RAISED,
    ),
    _verdict(
        "cyclic_chain",
        "a = ValueError(1); b = ValueError(2); a.__cause__ = b; b.__cause__ = a; raise a",
        RAISED,
    ),
    _verdict(
        "exception_group",
        "raise ExceptionGroup('many', [ValueError(i) for i in range(5000)])",
        RAISED,
    ),
    _verdict(
        "hostile_message",
        "class E(Exception):\n    def __str__(self): raise SystemExit\nraise E",
        RAISED,
    ),
    _verdict(
        "hostile_message_that_exits",
        "class E(Exception):\n    def __str__(self): os._exit(0)\nraise E",
        NO_RESULT,
    ),
    _verdict(
        "hostile_message_of_another_kind",
        "class E(Exception):\n    def __str__(self): return 5\nraise E",
        RAISED,
    ),
    _verdict(
        "hostile_class",
        "class E(Exception):\n    __class__ = property(lambda self: 1 / 0)\nraise E",
        RAISED,
    ),
    _verdict(
        "hostile_class_name",
        "class M(type):\n    __name__ = property(lambda self: 1 / 0)\n    __qualname__ = __name__\n    __module__ = __name__\nclass E(Exception, metaclass=M): pass\nraise E",
        RAISED,
    ),
    _verdict(
        "hostile_class_module", "class E(Exception): pass\nE.__module__ = object()\nraise E", RAISED
    ),
    _verdict("lying_class", "class E(Exception):\n    __class__ = MemoryError\nraise E", RAISED),
    _verdict("hostile_errno", "raise OSError(object(), 'x')", RAISED),
    _verdict("hostile_errno_kind", "raise OSError([1], 'x')", RAISED),
    _verdict("hostile_module", "raise ImportError('x', name=object())", RAISED),
    _verdict("hostile_module_list", "raise ModuleNotFoundError('x', name=[1])", NO_MODULE),
    _verdict(
        "hostile_syntax_error",
        "e = SyntaxError('x'); e.filename = object(); e.lineno = object(); e.offset = []; raise e",
        RAISED,
    ),
    _verdict(
        "hostile_attribute",
        "class E(OSError):\n    errno = property(lambda self: 1 / 0)\nraise E",
        RAISED,
    ),
    _verdict(
        "hostile_traceback",
        "class E(Exception):\n    __traceback__ = property(lambda self: 5)\nraise E",
        RAISED,
    ),
    _verdict("base_exception", "class E(BaseException): pass\nraise E", RAISED),
    _verdict("generator_exit", "raise GeneratorExit", RAISED),
    _verdict("surrogates_in_the_message", "raise ValueError('\\ud800')", RAISED),
    _verdict("huge_name_of_class", "raise type('E' * 100_000, (Exception,), {})", RAISED),
    _verdict("huge_name_of_file", "exec(compile('1 / 0', 'f' * 300_000, 'exec'))", RAISED),
]
