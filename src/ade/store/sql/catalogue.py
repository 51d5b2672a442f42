"""The statements on documents, configurations, drafts, versions and the files of results."""

from typing import Any

from sqlalchemy import Select, Table, Update, and_, delete, func, or_, select, union, update
from sqlalchemy.sql.base import Executable
from sqlalchemy.sql.elements import ColumnElement

from ade.store import rows
from ade.store.dialects.dialect import Dialect
from ade.store.parameters import Parameters
from ade.store.schema import (
    artifacts,
    builds,
    config_versions,
    configurations,
    documents,
    draft_files,
    jobs,
    requests,
    workspaces,
)
from ade.store.sql.clauses import insert_values, same, same_row

DRAFT_FILE = ("workspace_id", "configuration_id", *rows.File._fields, "changed_at")


def lock_workspace(d: Dialect, p: Parameters) -> Update:
    """Let one transaction at a time store something in a workspace, so that its usage holds."""
    return update(workspaces).where(same(workspaces, p, "id")).values(name=workspaces.c.name)


# --- documents ------------------------------------------------------------------------------------


def insert_document(d: Dialect, p: Parameters) -> Executable:
    """Insert a document."""
    return insert_values(p, documents, {name: p[name] for name in rows.Document._fields})


def find_document(d: Dialect, p: Parameters) -> Executable:
    """Find a document, also a deleted one."""
    return select(documents).where(same(documents, p, "workspace_id", "id"))


def list_documents(d: Dialect, p: Parameters) -> Executable:
    """List the documents of a workspace, newest first, that are older than one."""
    return _page(d, p, documents)


def delete_document(d: Dialect, p: Parameters) -> Update:
    """Mark a document as deleted; runs that have read it still name it."""
    return _mark_deleted(documents, p)


def document_digests(d: Dialect, p: Parameters) -> Executable:
    """List the contents of documents that exist, or that an unfinished job still has to read."""
    alive = select(documents.c.digest).where(documents.c.deleted_at.is_(None))
    of_request = and_(
        requests.c.workspace_id == documents.c.workspace_id,
        requests.c.document_id == documents.c.id,
    )
    needed = (
        select(documents.c.digest)
        .select_from(documents.join(requests, of_request).join(jobs, same_row()))
        .where(documents.c.deleted_at.is_not(None), jobs.c.finished_at.is_(None))
    )
    return union(alive, needed)


# --- configurations and their drafts --------------------------------------------------------------


def insert_configuration(d: Dialect, p: Parameters) -> Executable:
    """Insert a configuration."""
    return insert_values(p, configurations, {name: p[name] for name in rows.Configuration._fields})


def find_configuration(d: Dialect, p: Parameters) -> Executable:
    """Find a configuration that was not deleted."""
    return select(configurations).where(
        same(configurations, p, "workspace_id", "id"), configurations.c.deleted_at.is_(None)
    )


def list_configurations(d: Dialect, p: Parameters) -> Executable:
    """List the configurations of a workspace, newest first, that are older than one."""
    return _page(d, p, configurations)


def count_configurations(d: Dialect, p: Parameters) -> Executable:
    """Count the configurations of a workspace."""
    return select(func.count()).where(
        same(configurations, p, "workspace_id"), configurations.c.deleted_at.is_(None)
    )


def delete_configuration(d: Dialect, p: Parameters) -> Update:
    """Mark a configuration as deleted; its versions stay for the runs that name them."""
    return _mark_deleted(configurations, p)


def list_draft(d: Dialect, p: Parameters) -> Executable:
    """List the files of a draft."""
    columns = [draft_files.c[name] for name in rows.File._fields]
    return select(*columns).where(same(draft_files, p, "workspace_id", "configuration_id"))


def insert_draft_file(d: Dialect, p: Parameters) -> Executable:
    """Insert a file of a draft."""
    return insert_values(p, draft_files, {name: p[name] for name in DRAFT_FILE})


def delete_draft_file(d: Dialect, p: Parameters) -> Executable:
    """Delete a file of a draft."""
    return delete(draft_files).where(
        same(draft_files, p, "workspace_id", "configuration_id", "path")
    )


def delete_draft(d: Dialect, p: Parameters) -> Executable:
    """Delete all files of a draft."""
    return delete(draft_files).where(same(draft_files, p, "workspace_id", "configuration_id"))


def draft_digests(d: Dialect, p: Parameters) -> Executable:
    """List the contents of all drafts."""
    return (
        select(draft_files.c.digest)
        .select_from(draft_files.join(configurations, _of_configuration(draft_files)))
        .where(configurations.c.deleted_at.is_(None))
        .distinct()
    )


# --- versions -------------------------------------------------------------------------------------


def insert_version(d: Dialect, p: Parameters) -> Executable:
    """Insert a version."""
    return insert_values(p, config_versions, {name: p[name] for name in rows.Version._fields})


def find_version(d: Dialect, p: Parameters) -> Executable:
    """Find a version by its id."""
    return select(config_versions).where(same(config_versions, p, "workspace_id", "id"))


def find_version_by_digest(d: Dialect, p: Parameters) -> Executable:
    """Find the version of a configuration that has these files."""
    named = same(config_versions, p, "workspace_id", "configuration_id", "digest")
    return select(config_versions).where(named)


def find_version_by_sequence(d: Dialect, p: Parameters) -> Executable:
    """Find a version of a configuration by its number."""
    named = same(config_versions, p, "workspace_id", "configuration_id", "sequence")
    return select(config_versions).where(named)


def list_versions(d: Dialect, p: Parameters) -> Executable:
    """List the versions of a configuration, newest first, that are older than one."""
    older = (
        select(config_versions)
        .where(
            same(config_versions, p, "workspace_id", "configuration_id"),
            config_versions.c.sequence < p["sequence"],
        )
        .order_by(config_versions.c.sequence.desc())
    )
    return d.limited(older, p["limit"])


def newest_sequence(d: Dialect, p: Parameters) -> Executable:
    """Read the number of the newest version of a configuration."""
    of_configuration = same(config_versions, p, "workspace_id", "configuration_id")
    return select(func.max(config_versions.c.sequence)).where(of_configuration)


def manifests_in_use(d: Dialect, p: Parameters) -> Executable:
    """List what is in versions whose configuration exists, or that something unfinished needs."""
    of_request = and_(jobs.c.workspace_id == requests.c.workspace_id, jobs.c.id == requests.c.id)
    unfinished = (
        select(requests.c.configuration_id)
        .select_from(requests.join(jobs, of_request))
        .where(requests.c.configuration_id.is_not(None), jobs.c.finished_at.is_(None))
    )
    building = select(builds.c.configuration_id).where(builds.c.finished_at.is_(None))
    needed = or_(
        configurations.c.deleted_at.is_(None),
        configurations.c.id.in_(unfinished),
        configurations.c.id.in_(building),
    )
    return (
        select(config_versions.c.manifest)
        .select_from(config_versions.join(configurations, _of_configuration(config_versions)))
        .where(needed)
    )


# --- artifacts ------------------------------------------------------------------------------------


def find_artifact(d: Dialect, p: Parameters) -> Executable:
    """Find an artifact of any workspace."""
    columns = [artifacts.c[name] for name in rows.ArtifactRow._fields]
    return select(*columns).where(same(artifacts, p, "id"))


def find_content(d: Dialect, p: Parameters) -> Executable:
    """Find a document or an artifact of a workspace that has these bytes."""
    document = select(documents.c.digest).where(
        same(documents, p, "workspace_id", "digest"), documents.c.deleted_at.is_(None)
    )
    return union(
        document, select(artifacts.c.digest).where(same(artifacts, p, "workspace_id", "digest"))
    )


def artifact_digests(d: Dialect, p: Parameters) -> Executable:
    """List the contents of all artifacts."""
    return select(artifacts.c.digest).distinct()


# --- what a workspace stores ----------------------------------------------------------------------


def content_bytes(d: Dialect, p: Parameters) -> Executable:
    """Add up the documents and artifacts of a workspace; the same bytes count once."""
    distinct = union(
        select(documents.c.digest, documents.c.size_bytes).where(
            same(documents, p, "workspace_id"), documents.c.deleted_at.is_(None)
        ),
        select(artifacts.c.digest, artifacts.c.size_bytes).where(
            same(artifacts, p, "workspace_id")
        ),
    ).subquery()
    return select(func.coalesce(func.sum(distinct.c.size_bytes), 0))


def draft_sizes(d: Dialect, p: Parameters) -> Executable:
    """List the files of all drafts of a workspace, with the configuration that each belongs to."""
    return (
        select(draft_files.c.configuration_id, draft_files.c.digest, draft_files.c.size_bytes)
        .select_from(draft_files.join(configurations, _of_configuration(draft_files)))
        .where(same(configurations, p, "workspace_id"), configurations.c.deleted_at.is_(None))
    )


def count_versions(d: Dialect, p: Parameters) -> Executable:
    """Count the versions of each configuration of a workspace."""
    return (
        select(config_versions.c.configuration_id, func.count())
        .select_from(config_versions.join(configurations, _of_configuration(config_versions)))
        .where(same(configurations, p, "workspace_id"), configurations.c.deleted_at.is_(None))
        .group_by(config_versions.c.configuration_id)
    )


def list_manifests(d: Dialect, p: Parameters) -> Executable:
    """List what is in the versions of a configuration."""
    of_configuration = same(config_versions, p, "workspace_id", "configuration_id")
    return select(config_versions.c.manifest).where(of_configuration)


def _page(d: Dialect, p: Parameters, table: Table) -> Select[Any]:
    older = select(table).where(
        same(table, p, "workspace_id"), table.c.id < p["id"], table.c.deleted_at.is_(None)
    )
    return d.limited(older.order_by(table.c.id.desc()), p["limit"])


def _mark_deleted(table: Table, p: Parameters) -> Update:
    alive = same(table, p, "workspace_id", "id"), table.c.deleted_at.is_(None)
    return update(table).where(*alive).values(deleted_at=p["deleted_at"])


def _of_configuration(table: Table) -> ColumnElement[bool]:
    return and_(
        table.c.workspace_id == configurations.c.workspace_id,
        table.c.configuration_id == configurations.c.id,
    )
