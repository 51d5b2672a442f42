"""A browser under test: a client that holds cookies, and signs in as a person would."""

import re
from typing import Any

import httpx
from tests.api.server import KEY, Server

SESSION = "/api/v1/session"


async def signed_in(server: Server, key: str = KEY, url: str = "http://ade") -> httpx.AsyncClient:
    """Sign in with a key, and return the browser with the headers that its pages send."""
    browser = server.client(base_url=url)
    answer = await browser.post("/login", data={"api_key": key}, headers={"Origin": url})
    assert answer.status_code == 303, answer.text
    browser.headers.update({"Origin": url, "X-CSRF-Token": await csrf_of(browser)})
    return browser


async def csrf_of(browser: httpx.AsyncClient) -> str:
    """Ask for the CSRF token of the browser's session."""
    token: str = (await browser.get(SESSION)).json()["csrf_token"]
    return token


def cookie_of(answer: httpx.Response) -> tuple[str, str, set[str]]:
    """Return name, value and attributes of the cookie that an answer sets."""
    [line] = answer.headers.get_list("set-cookie")
    pair, *attributes = [part.strip() for part in line.split(";")]
    name, _, value = pair.partition("=")
    return name, value, {attribute.lower() for attribute in attributes}


def fields(page: httpx.Response) -> dict[str, Any]:
    """Return the hidden fields of a page's first form."""
    form = re.search(r"<form.*?</form>", page.text, re.DOTALL)
    assert form is not None, page.text
    return dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form[0]))
