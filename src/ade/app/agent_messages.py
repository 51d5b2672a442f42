"""The messages between a server and the agents that run jobs for it, as JSON.

What an agent sends is checked and never trusted: a message holds no status that an attempt cannot
end in, and no part of the job that the server knows itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from ade.domain.errors import InvalidRequest
from ade.domain.evaluation import Evaluation
from ade.domain.job import Status
from ade.domain.lease import LeaseRule
from ade.domain.outcome import Category, JobError, Outcome
from ade.domain.output import BATCH_BYTES_MAX, BATCH_PIECES_MAX, Piece, Stream, batch_of, pieces_of
from ade.stages.output import OutputAppend
from ade.store.rows import Claim, LeaseRef

LEASES_MAX = 1000
BATCHES_MAX = 4096
CLAIMS_MAX = 100
KINDS_MAX = 100
SLOTS_MAX = 10_000
DRAINS_IN_SECONDS_MAX = 10**9
ARTIFACTS_MAX = 100_100
KIND_CHARS_MAX = 40
LOCK_CHARS_MAX = 4_000_000
Digest = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
Receipt = Annotated[str, Field(max_length=100)]
EndStatus = Literal["succeeded", "failed", "timed_out", "cancelled", "paused"]
PieceRow = tuple[Stream, Annotated[int, Field(ge=0)], str]


@dataclass(frozen=True, slots=True)
class ClaimMessage:
    """Ask for jobs of these kinds."""

    limit: Annotated[int, Field(ge=1, le=CLAIMS_MAX)]
    kinds: Annotated[list[str], Field(max_length=KINDS_MAX)]


@dataclass(frozen=True, slots=True)
class ClaimsMessage:
    """Answer with the jobs that were claimed, and how long their leases last."""

    lease: LeaseRule
    claims: list[Claim]


@dataclass(frozen=True, slots=True)
class RenewalMessage:
    """Ask to renew leases."""

    leases: Annotated[list[LeaseRef], Field(max_length=LEASES_MAX)]


@dataclass(frozen=True, slots=True)
class RenewedMessage:
    """Answer with the stop request of each lease; None stands for a lease that was lost."""

    lease: LeaseRule
    renewed: list[tuple[str | None] | None]


@dataclass(frozen=True, slots=True)
class OutputMessage:
    """Hold output of an attempt, by its place among all that the attempt wrote."""

    lease: LeaseRef
    batches: Annotated[
        list[Annotated[list[PieceRow], Field(min_length=1, max_length=BATCH_PIECES_MAX)]],
        Field(max_length=BATCHES_MAX),
    ]
    dropped: tuple[int, int] | None = None

    @staticmethod
    def of(append: OutputAppend) -> "OutputMessage":
        """Make the message of what a worker appends."""
        batches: list[list[PieceRow]] = [
            [(Stream(piece.stream), piece.starts, piece.text) for piece in pieces_of(batch.pieces)]
            for batch in append.batches
        ]
        return OutputMessage(append.lease, batches, append.dropped)

    def as_append(self) -> OutputAppend:
        """Return what is to be stored; its sizes are counted here."""
        batches = tuple(batch_of(Piece(*row) for row in rows) for rows in self.batches)
        for batch in batches:
            if not 0 <= batch.ends - batch.starts <= BATCH_BYTES_MAX:
                raise InvalidRequest(f"A batch of output has at most {BATCH_BYTES_MAX} bytes.")
        return OutputAppend(self.lease, batches, self.dropped)


@dataclass(frozen=True, slots=True)
class ErrorMessage:
    """Say what went wrong in an attempt."""

    category: Category
    code: Annotated[str, Field(max_length=100)]
    message: str
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ArtifactMessage:
    """Name a file that an attempt sent, as the attempt describes it."""

    name: Annotated[str, Field(min_length=1)]
    digest: Digest
    size_bytes: Annotated[int, Field(ge=0)]
    receipt: Receipt
    kind: Annotated[str, Field(max_length=KIND_CHARS_MAX)] | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OutcomeMessage:
    """Say how an attempt ended."""

    status: EndStatus
    result: dict[str, Any] | None = None
    error: ErrorMessage | None = None
    usage: dict[str, Any] = field(default_factory=dict)
    isolation: list[str] = field(default_factory=list)
    evaluation: Evaluation | None = None
    counts: dict[str, Any] | None = None
    artifacts: Annotated[list[ArtifactMessage], Field(max_length=ARTIFACTS_MAX)] = field(
        default_factory=list
    )

    @staticmethod
    def of(
        outcome: Outcome, receipts: Mapping[str, str] = MappingProxyType({})
    ) -> "OutcomeMessage":
        """Make the message of an outcome, with the receipts for its files by their digests."""
        error = outcome.error
        return OutcomeMessage(
            outcome.status.value,  # type: ignore[arg-type]  # an outcome has no other
            outcome.result,
            None
            if error is None
            else ErrorMessage(error.category, error.code, error.message, error.details),
            outcome.usage,
            list(outcome.isolation),
            outcome.evaluation,
            outcome.counts,
            [
                ArtifactMessage(
                    one.name,
                    one.digest,
                    one.size_bytes,
                    receipts.get(one.digest, ""),
                    one.kind,
                    one.metadata,
                )
                for one in outcome.artifacts
            ],
        )

    def as_outcome(self) -> Outcome:
        """Return what is to be recorded, without the files: those are checked first."""
        error = self.error
        return Outcome(
            Status(self.status),
            self.result,
            None
            if error is None
            else JobError(error.category, error.code, error.message, error.details),
            self.usage,
            tuple(self.isolation),
            evaluation=self.evaluation,
            counts=self.counts,
        )


@dataclass(frozen=True, slots=True)
class EndMessage:
    """Say how an attempt ended, with output that was not stored yet; no outcome hands it back."""

    lease: LeaseRef
    outcome: OutcomeMessage | None = None
    output: OutputMessage | None = None


@dataclass(frozen=True, slots=True)
class EndedMessage:
    """Answer with the status of the job now."""

    status: Status


@dataclass(frozen=True, slots=True)
class ReportMessage:
    """Report the progress of an attempt."""

    lease: LeaseRef
    progress: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ReportedMessage:
    """Answer whether the report was kept; False if the job's log is full."""

    kept: bool


@dataclass(frozen=True, slots=True)
class WorkerMessage:
    """Say what an agent runs in its sandbox at the moment; no slots: it is about to leave."""

    host: Annotated[str, Field(max_length=100)]
    kinds: Annotated[list[Annotated[str, Field(max_length=63)]], Field(max_length=KINDS_MAX)]
    slots: Annotated[int, Field(ge=0, le=SLOTS_MAX)]
    drains_in_seconds: Annotated[float, Field(ge=0, le=DRAINS_IN_SECONDS_MAX)] | None = None
    block: Annotated[str, Field(max_length=100)] | None = None
    has_stopped: bool = False


@dataclass(frozen=True, slots=True)
class InputMessage:
    """Ask for an input of a job by its name there: an identifier or a digest."""

    lease: LeaseRef
    name: Annotated[str, Field(max_length=100)]


@dataclass(frozen=True, slots=True)
class FileMessage:
    """Name bytes, with a link that this attempt can fetch them by for a while."""

    digest: Digest
    link: str


@dataclass(frozen=True, slots=True)
class DocumentMessage:
    """Describe a document."""

    name: str
    file: FileMessage


@dataclass(frozen=True, slots=True)
class PackageMessage:
    """Describe a version of a configuration; its files by their paths."""

    configuration_id: str
    sequence: int
    digest: str
    files: dict[str, FileMessage]


@dataclass(frozen=True, slots=True)
class BlobMessage:
    """Describe bytes that a job reads."""

    file: FileMessage


@dataclass(frozen=True, slots=True)
class EnvironmentMessage:
    """Name the installed packages that a build made; None is ADE's own environment."""

    environment: Digest | None


@dataclass(frozen=True, slots=True)
class RecipeMessage:
    """Say what an environment is made of; its digest is made of that."""

    environment: Digest
    lock: Annotated[str, Field(max_length=LOCK_CHARS_MAX)]
    interpreter: Annotated[str, Field(max_length=200)]
    installer: Annotated[str, Field(max_length=100)]
    source_builds: bool


@dataclass(frozen=True, slots=True)
class ArchiveMessage:
    """Describe the archive of an environment."""

    recipe: RecipeMessage
    file: FileMessage


@dataclass(frozen=True, slots=True)
class SentArchive:
    """Name the archive of an environment, as an attempt sent it."""

    digest: Digest
    size_bytes: Annotated[int, Field(ge=1)]
    installed_bytes: Annotated[int, Field(ge=0)]
    receipt: Receipt


@dataclass(frozen=True, slots=True)
class MadeEnvironmentMessage:
    """Say that a build made an environment; without an archive, ask whether there is one."""

    lease: LeaseRef
    recipe: RecipeMessage
    archive: SentArchive | None = None


@dataclass(frozen=True, slots=True)
class KnownEnvironmentMessage:
    """Answer whether the server has an archive of an environment."""

    known: bool


@dataclass(frozen=True, slots=True)
class ReceiptMessage:
    """Say that the bytes have arrived."""

    receipt: str
