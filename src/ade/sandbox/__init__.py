"""Run other people's code in the sandbox.

The model. The worker, which holds the secrets, never runs a job itself. For each environment it
starts a *zygote*: an interpreter in the sandbox of its own that has imported the runtime and the
environment's modules, and then does nothing but fork. Each fork becomes one job's *child*: it goes
into namespaces of its own, puts up its layers, looks whether they stand, and says that it is ready;
only then is it handed an order, over a line that the zygote never reads. One child runs one order
and is gone, with everything that it started.

    worker (ade.sandbox)            in the sandbox (ade.sandbox.child)
    pool ── launches ─────────────> launch ── exec ──> zygote
    pool ── spawn, descriptors ───> zygote ── clone ─> child: layers, check, "ready"
    supervisor ── order ──────────────────────────────> child: runs the entry
    supervisor <── progress, result or error ───────── child
    supervisor <── pidfd, exit status, usage ── zygote

Who is believed. What happened to a child (its end, its time, its memory, what it was refused) comes
from the kernel. What a child says is believed about one thing only: what its code returned.

Failures.
    a child ends, is killed, crashes     judged by `ade.sandbox.exit_status`
    the zygote dies                      its children die with it: INTERNAL_ERROR, tried again
    the worker dies                      its zygotes see their line close and die, with all children
    a layer cannot be applied            the child says so and ends: no code was run, INTERNAL_ERROR
"""
