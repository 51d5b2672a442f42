def on_job_end(summary):
    print("members written:", summary["rows_written"])
