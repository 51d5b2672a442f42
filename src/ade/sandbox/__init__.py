"""Run untrusted code in a sandbox.

The model. The worker holds the secrets and never runs a job itself. For each environment it starts
a *zygote*: a sandboxed interpreter that has imported the runtime and the environment's modules, and
then only forks. Each fork becomes the *child* of one job: it enters its own namespaces, applies
its layers, checks that they hold, and reports that it is ready. Only then does it receive its
`RunSpec`, over a line that the zygote never reads. One child runs one spec and is gone, with every
process that it started.

    worker (ade.sandbox)            sandboxed (ade.sandbox.child)
    pool ── launches ─────────────> launch ── exec ──> zygote
    pool ── spawn, descriptors ───> zygote ── clone ─> child: layers, check, "ready"
    supervisor ── spec ───────────────────────────────> child: runs the entry
    supervisor <── progress, result or error ───────── child
    supervisor <── pidfd, exit status, usage ── zygote

What is trusted. What happened to a child (its end, its time, its memory, the calls that it was
denied) comes from the kernel. A child is trusted about one thing only: what its code returned.

Failures.
    a child ends, is killed, crashes     classified by `ade.sandbox.exit_status`
    the zygote dies                      its children die with it: INTERNAL_ERROR, retried
    the worker dies                      its zygotes see their line close and die, with all children
    a layer cannot be applied            the child reports it and ends without running any code:
                                         INTERNAL_ERROR
"""
