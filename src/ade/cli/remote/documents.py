"""``ade documents``: upload, list, preview and download documents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ade.cli.remote.connect import connected
from ade.cli.remote.show import show, show_rows, size, table
from ade.cli.remote.watch import uploading

if TYPE_CHECKING:
    from ade.client import Client
    from ade.client.sync.documents import Document

LIST_MAX = 50
COLUMNS = ("id", "name", "size", "uploaded", "digest")
Name = Annotated[str, typer.Argument(metavar="DOCUMENT", help="The name or the id of a document.")]

app = typer.Typer(help="Upload, list, preview and download documents.", invoke_without_command=True)


@app.callback()
def documents(
    context: typer.Context,
    limit: Annotated[int, typer.Option(min=1, help="How many, the newest first.")] = LIST_MAX,
) -> None:
    """List documents, the newest first; with a subcommand, do that."""
    if context.invoked_subcommand is not None:
        return
    with connected() as client:
        show_rows(client.documents.list(limit), COLUMNS, row_of, "There is no document yet.")


def row_of(document: Any) -> tuple[Any, ...]:
    """Return the cells of a document in a list."""
    return (
        document.id,
        document.name,
        size(document.size_bytes),
        document.created_at,
        document.digest,
    )


@app.command("upload")
def upload(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Files of this machine.")],
) -> None:
    """Upload files, checked against their digests."""
    with connected() as client:
        made = [upload_file(client, file) for file in files]
        show_rows(made, COLUMNS, row_of, "")


def upload_file(client: Client, file: Path) -> Document:
    """Upload one file, with a bar if someone watches."""
    with uploading(file.name) as sent:
        return client.documents.upload(file, on_progress=sent)


@app.command("show")
def show_document(name: Name) -> None:
    """Show a document."""
    with connected() as client:
        document = client.documents.get(name)
        show(document.raw, lambda: table(COLUMNS, [row_of(document)]))


@app.command("preview")
def preview(
    name: Name,
    sheet: Annotated[str | None, typer.Option(help="The name or the number of a sheet.")] = None,
    rows: Annotated[int, typer.Option(min=1, max=200, help="How many.")] = 20,
) -> None:
    """Show the first rows of a sheet."""
    with connected() as client:
        found = client.documents.get(name).preview(sheet, rows)
        first = found.get("first_row") or 1
        numbered = ((first + place, *row) for place, row in enumerate(found["rows"]))
        show(found, lambda: table(("", *found["columns"]), numbered, "The sheet is empty."))


@app.command("download")
def download(
    name: Name,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A file or a folder; else its name.")
    ] = None,
) -> None:
    """Save a document, checked against its digest."""
    with connected() as client:
        place = client.documents.get(name).download(out)
        show(str(place), lambda: typer.echo(place))


@app.command("delete")
def delete(names: Annotated[list[str], typer.Argument(metavar="DOCUMENT...")]) -> None:
    """Delete documents; runs that were submitted before still read them."""
    with connected() as client:
        found = [client.documents.get(name) for name in names]
        for document in found:
            document.delete()
        show([one.raw for one in found], lambda: _say_deleted(found))


def _say_deleted(found: list[Document]) -> None:
    for document in found:
        typer.echo(f"Deleted {document.name} ({document.id}).")
