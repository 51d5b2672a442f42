"""What the worker contract shows of jobs, and who may see it."""

from tests.api.server import Server

NOWHERE = "01900000-0000-7000-8000-000000000000"


async def test_the_status_of_an_unknown_job_is_not_found(server: Server) -> None:
    answer = await server.http.get(f"/status/{NOWHERE}")
    assert answer.status_code == 404
    assert answer.json() == {
        "detail": "There is no such job.",
        "code": "not_found",
        "job_id": NOWHERE,
        "status": "not_found",
    }
    assert answer.headers["x-trace-id"]


async def test_errors_have_a_detail(server: Server) -> None:
    # What a browser sends is never trusted for its address alone.
    nobody = await server.client().get(f"/status/{NOWHERE}/", headers={"accept-language": "de"})
    assert (nobody.status_code, nobody.json()["code"]) == (401, "unauthenticated")
    assert nobody.json()["detail"].startswith("Send an API key")
    assert nobody.headers["content-type"] == "application/json"
    assert "Bearer" in nobody.headers["www-authenticate"]
    no_path = await server.http.get("/ops/nothing")
    assert (no_path.status_code, no_path.json()["detail"]) == (404, "There is no such path.")
    wrong = await server.http.post(f"/status/{NOWHERE}")
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "GET")
