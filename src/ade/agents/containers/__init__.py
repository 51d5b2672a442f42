"""Run the containers of jobs on this host, by the Docker Engine API."""
