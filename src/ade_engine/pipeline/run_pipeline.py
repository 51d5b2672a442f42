"""Run all steps for one file, from its sheets to the output, and call the hooks in between."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from ade_engine.package.config_package import Package
from ade_engine.package.function_arguments import Context
from ade_engine.pipeline.left_out import left_out
from ade_engine.pipeline.map_tables import PlannedTable, evaluate_all, map_table
from ade_engine.pipeline.output_workbook import InputFile
from ade_engine.pipeline.process_table import author_table, process_table
from ade_engine.pipeline.read_tables import read_tables, record_unread_sheets
from ade_engine.pipeline.table_notation import convention_of
from ade_engine.pipeline.write_output import Output, OutputOptions, lay_out_tables
from ade_engine.record.artifact import summary_of
from ade_engine.record.run_events import EventName, Recorder
from ade_engine.sheets.read_limits import ReadOptions
from ade_engine.sheets.workbook import open_workbook

TEXT_FORMATS = ("csv", "tsv", "html")  # a link cannot name a cell of these

Progress = Callable[[int, int, str], None]


def run_pipeline(
    package: Package,
    source: Path,
    folder: Path,
    *,
    job_id: str,
    input_name: str,
    record: Recorder,
    headers: bool,
    progress: Progress,
    options: OutputOptions = OutputOptions(),
) -> None:
    """Find tables, map them, then transform, validate and write them."""
    ctx = Context(job_id, input_name, package.settings.author)
    package.call_hooks("on_job_start", {"ctx": ctx})
    progress(0, 0, "reading")
    with open_workbook(source, ReadOptions(spool_folder=folder)) as book:
        record.emit(
            EventName.FILE_OPENED,
            format=book.format,
            encoding=book.encoding,
            delimiter=book.delimiter,
        )
        record_unread_sheets(book.unread, record)
        planned = [
            map_table(found, package, ctx, record, headers=headers, convention=convention_of(book))
            for found in read_tables(book.sheets, package, ctx, record)
        ]
        source_file = InputFile(input_name, book.format not in TEXT_FORMATS)
        output = partial(Output, folder, package, source=source_file, options=options)
        _write(planned, package, ctx, record, output, progress)
    evaluation = evaluate_all(planned)
    summary = {**summary_of(record.events), "evaluation": evaluation.value}
    package.call_hooks("on_job_end", {"summary": summary, "ctx": ctx})
    record.emit(EventName.RUN_FINISHED, evaluation=evaluation.value)


def _write(
    planned: list[PlannedTable],
    package: Package,
    ctx: Context,
    record: Recorder,
    open_output: Callable[..., Output],
    progress: Progress,
) -> None:
    written = [table for table in planned if table.is_written]
    layouts = lay_out_tables(written, package)
    total = sum(table.mapped.region.data_rows.count for table in written)
    done = 0

    def report_rows(rows: int) -> None:
        nonlocal done
        done += rows
        progress(done, total, "writing")

    progress(0, total, "writing")
    with open_output(layouts=layouts) as output:
        output.add_left_out(left_out(record.events, planned))
        for table, layout in zip(written, layouts, strict=True):
            sheet = output.open_table(layout, table)
            result = process_table(
                table, package, ctx, layout.columns, layout.kept_columns, output, report_rows
            )
            output.close_table()
            number = table.mapped.number
            origin = {"table": number, "sheet": table.mapped.sheet}
            record.emit(
                EventName.TABLE_TRANSFORMED,
                **origin,
                rows=result.rows,
                changed={name: count for name, count in result.changed.items() if count},
            )
            record.emit(
                EventName.TABLE_VALIDATED,
                **origin,
                **result.issue_log.counts(),
                issues=result.issue_log.as_json(table.mapped.targets),
                lines_omitted=result.issue_log.lines_omitted,
            )
            record.emit(EventName.TABLE_WRITTEN, table=number, sheet=sheet, rows=result.rows)
            summary = {"rows": result.rows, **result.issue_log.counts()}
            arguments = {"table": author_table(table), "summary": summary, "ctx": ctx}
            package.call_hooks("on_table_written", arguments)
    record.emit(EventName.OUTPUT_WRITTEN, **output.as_json())
