"""Logs: coloured lines for a terminal, JSON for everything else."""

import logging
import sys

import structlog


def set_up_logs(log_format: str, log_level: str) -> None:
    """Send every log line, ours and the libraries', to stderr in one format."""
    level = getattr(logging, log_level.upper())
    as_text = log_format == "text" or (log_format == "auto" and sys.stderr.isatty())
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]
    if as_text:
        shared.append(structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty()))
    else:
        shared += [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    structlog.configure(
        processors=shared,
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(message)s", force=True)
