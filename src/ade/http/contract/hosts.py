"""`/hosts`: the hosts of agents, and what they run."""

from collections import defaultdict

from fastapi import APIRouter, Request, Response

from ade.app.host_views import host_body, known_hosts
from ade.http.auth import Role
from ade.http.contract.context import ContractContext
from ade.http.responses import json_response
from ade.store.port import Reading
from ade.store.rows import HeldJob, HostRow


def host_routes(context: ContractContext) -> APIRouter:
    """Make the route."""
    router = APIRouter(tags=["agents"])

    @router.get("/hosts")
    async def list_hosts(request: Request) -> Response:
        """List the hosts that were heard of; an agent sees itself, a user the jobs that it may."""
        caller = await context.callers.caller(request.scope)

        def look(reading: Reading) -> tuple[list[HostRow], list[HeldJob]]:
            return reading.agent_jobs.hosts(), reading.agent_jobs.held()

        rows, held = await context.kernel.read(look)
        jobs: defaultdict[str, list[HeldJob]] = defaultdict(list)
        for job in held:
            if caller.user is None or caller.user.role_in(job.workspace_id) > Role.NONE:
                jobs[job.lease_owner].append(job)
        now_us = context.kernel.store.clock.now_us()
        rule, available = context.kernel.settings.staleness, context.settings.available_hosts
        enrolled = {agent.name: agent for agent in await context.agents.list_all()}
        hosts = {
            host.name: host_body(
                host,
                rule,
                now_us,
                agent=enrolled.get(host.name),
                jobs=jobs[host.name],
                available=available,
            )
            for host in known_hosts(rows, context.hosts.notes(), now_us)
            if caller.name in (None, host.name)
        }
        return json_response({"available_hosts": list(available), "hosts": hosts})

    return router
