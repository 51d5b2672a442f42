"""Every command: where it is, and its line of help. Nothing heavy is imported here."""

import typer

from ade.cli.lazy_commands import Lazy, lazy_group

COMMANDS = {
    "On this machine": {
        "run": Lazy(
            "ade.cli.run:run_file",
            "Normalise a file with a config package, without a server and without a sandbox.",
        ),
        "inspect": Lazy(
            "ade.cli.inspect:inspect",
            "Show the tables of spreadsheets: ranges, headers, skipped rows, confidence, and why.",
        ),
        "config": Lazy(
            "ade.cli.command_table:config",
            "Write, test and push config packages, and activate their versions.",
        ),
        "demo": Lazy(
            "ade.cli.demo:demo",
            "Show one run from its upload to its result, on the embedded database.",
        ),
    },
    "On a server": {
        "login": Lazy(
            "ade.cli.remote.login:login",
            "Check a key against a server and keep both under a name.",
        ),
        "logout": Lazy(
            "ade.cli.remote.login:logout",
            "Forget a profile and its key; the key itself stays valid.",
        ),
        "profiles": Lazy(
            "ade.cli.remote.login:profiles", "List the profiles that `ade login` made."
        ),
        "submit": Lazy(
            "ade.cli.remote.submit:submit",
            "Run a configuration on files; with --wait, save what they became.",
        ),
        "runs": Lazy("ade.cli.remote.runs:app", "List, follow, explain and repeat runs."),
        "jobs": Lazy("ade.cli.remote.jobs:app", "Submit, list, follow and decide about jobs."),
        "cells": Lazy(
            "ade.cli.remote.cells:app", "Run pieces of Python in the sandbox of the server."
        ),
        "documents": Lazy(
            "ade.cli.remote.documents:app", "Upload, list, preview and download documents."
        ),
        "builds": Lazy("ade.cli.remote.builds:app", "List builds, read their logs, wait for them."),
        "targets": Lazy(
            "ade.cli.remote.targets:app", "See what holds a lane, and decide about it."
        ),
        "keys": Lazy("ade.cli.remote.keys:app", "List, make and revoke API keys."),
        "workspaces": Lazy("ade.cli.remote.workspaces:app", "List, make and choose workspaces."),
    },
    "Operate": {
        "serve": Lazy(
            "ade.cli.serve:serve", "Accept jobs over HTTP and run them, until it is stopped."
        ),
        "worker": Lazy(
            "ade.cli.worker:worker",
            "Run jobs of a PostgreSQL database, or of a server over HTTP.",
        ),
        "agent": Lazy(
            "ade.cli.agent:agent",
            "Take jobs from a server, and run them on this host.",
        ),
        "agents": Lazy(
            "ade.cli.agents:app",
            "Enrol the agents that run jobs on other hosts.",
        ),
        "scale": Lazy(
            "ade.cli.scale:app", "Start workers on Slurm or another engine while work waits."
        ),
        "link": Lazy(
            "ade.cli.link:link",
            "Make a link that signs a browser in once, as an operator; needs the database only.",
        ),
        "doctor": Lazy(
            "ade.cli.doctor:doctor",
            "Show which sandbox layers hold here; exit 5 if untrusted code would be refused.",
        ),
        "settings": Lazy(
            "ade.cli.settings:print_settings",
            "Print every setting, its value and where the value came from.",
        ),
        "backup": Lazy(
            "ade.cli.backup:backup", "Back up the database and its blobs, beside servers that run."
        ),
        "gc": Lazy(
            "ade.cli.gc:gc", "List what servers will delete with their next collection, and why."
        ),
        "restore": Lazy("ade.cli.backup:restore", "Bring a backup back into an empty database."),
        "db": Lazy("ade.cli.db:app", "Look after the database."),
        "version": Lazy("ade.cli.version:version", "Print the version."),
    },
}

CONFIG = {
    "In a folder": {
        "init": Lazy(
            "ade.cli.config:init",
            "Start a config package from an example, with its tests and a sample.",
        ),
        "check": Lazy(
            "ade.cli.config:check",
            "Load a package, check its functions and settings, and list its fields and rules.",
        ),
        "test": Lazy("ade.cli.config:run_tests", "Run the tests of a package with pytest."),
    },
    "On a server": {
        "list": Lazy(
            "ade.cli.remote.configurations:list_configurations",
            "List the configurations of the workspace.",
        ),
        "versions": Lazy(
            "ade.cli.remote.configurations:versions", "List the versions of a configuration."
        ),
        "push": Lazy(
            "ade.cli.remote.push:push",
            "Replace the draft of a configuration by a folder, and check it there.",
        ),
        "pull": Lazy(
            "ade.cli.remote.configurations:pull",
            "Write the files of a draft, or of a version, to a folder.",
        ),
        "diff": Lazy(
            "ade.cli.remote.configurations:diff",
            "Compare a folder with the draft, or with a version.",
        ),
        "activate": Lazy(
            "ade.cli.remote.configurations:activate",
            "Make a version the active one as soon as its build is ready.",
        ),
        "delete": Lazy(
            "ade.cli.remote.configurations:delete",
            "Delete a configuration; runs that were accepted before still run.",
        ),
    },
}

config = typer.Typer(
    help="Write, test and push config packages, and activate their versions.",
    cls=lazy_group(CONFIG),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
