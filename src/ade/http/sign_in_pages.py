"""The pages that sign in and out: plain HTML without scripts, complete in one response.

The policy allows the one style sheet that is in the page, by its digest, and forms to this server;
nothing else is loaded, framed or run. `Referrer-Policy: strict-origin` keeps the token of a link
out of the Referer header. `no-referrer` would do that too, but then browsers send `Origin: null`
with the form, which is checked.
"""

import base64
import hashlib
from html import escape

from starlette.responses import HTMLResponse

from ade.http.csrf import FIELD

STYLE = """
:root { color-scheme: light dark; --page: #f6f7f9; --card: #fff; --text: #1b1f27; --soft: #545b69;
  --edge: #8a91a0; --accent: #4146c8; --on-accent: #fff; --bad: #a3201d; --bad-page: #fdecec }
@media (prefers-color-scheme: dark) { :root { --page: #12141a; --card: #1b1e26; --text: #e8eaf0;
  --soft: #a5acbb; --edge: #6d7484; --accent: #a5adff; --on-accent: #14162b; --bad: #ffb3ae;
  --bad-page: #3a1d1f } }
* { box-sizing: border-box }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; padding: 1rem;
  background: var(--page); color: var(--text); font: 1rem/1.5 system-ui, sans-serif }
main { width: 100%; max-width: 26rem; padding: 2rem; border-radius: 10px; background: var(--card);
  box-shadow: 0 1px 3px rgb(0 0 0 / .2) }
h1 { margin: 0 0 1rem; font-size: 1.375rem; line-height: 1.3 }
p { margin: 0 0 1rem }
label { display: block; margin-bottom: .25rem; font-weight: 600 }
input { width: 100%; min-height: 2.75rem; padding: .5rem .75rem; border: 1px solid var(--edge);
  border-radius: 6px; background: transparent; color: inherit; font: inherit }
button { width: 100%; min-height: 2.75rem; margin-top: 1rem; border: 1px solid var(--accent);
  border-radius: 6px; background: var(--accent); color: var(--on-accent); font: inherit;
  font-weight: 600; cursor: pointer }
button.quiet { background: transparent; color: var(--accent) }
a { color: var(--accent) }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px }
.hint { margin: .5rem 0 0; color: var(--soft); font-size: .875rem }
.alert { padding: .75rem; border-radius: 6px; background: var(--bad-page); color: var(--bad) }
code { font-size: .9em }
"""
_DIGEST = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
PAGE_HEADERS = {
    "Content-Security-Policy": (
        f"default-src 'none'; style-src 'sha256-{_DIGEST}'; form-action 'self';"
        " base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-store",
    "Referrer-Policy": "strict-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def sign_in_page(after: str, problem: str = "", status: int = 200) -> HTMLResponse:
    """Show the form that takes an API key; `after` is the local path to go to then."""
    return _page(
        "Sign in to ADE",
        f"""{_alert(problem)}
<form method="post" action="/login">
<input type="hidden" name="next" value="{escape(after)}">
<input autocomplete="username" value="ADE" hidden>
<label for="api_key">API key</label>
<input id="api_key" name="api_key" type="password" required autofocus maxlength="256"
 autocomplete="current-password" autocapitalize="none" spellcheck="false"
 aria-describedby="hint">
<p class="hint" id="hint">The key begins with <code>ade_</code> unless an administrator chose it.
No key? On the machine of the server, <code>ade link</code> makes a link that signs in once.</p>
<button>Sign in</button>
</form>""",
        status,
    )


def confirm_page(token: str) -> HTMLResponse:
    """Ask for a click before a one-time link is used: programs that preview links do not click."""
    return _page(
        "Sign in to ADE",
        f"""<p>This link signs this browser in once.</p>
<form method="post" action="/login">
<input type="hidden" name="token" value="{escape(token)}">
<button autofocus>Sign in</button>
</form>""",
    )


def signed_in_page(user_name: str, csrf: str, after: str) -> HTMLResponse:
    """Show who is signed in, with the ways to sign out."""
    field = f'<input type="hidden" name="{FIELD}" value="{escape(csrf)}">'
    return _page(
        f"Signed in as {user_name}",
        f"""<p><a href="{escape(after)}">Continue</a></p>
<form method="post" action="/logout">{field}<button>Sign out</button></form>
<form method="post" action="/logout">{field}<input type="hidden" name="everywhere" value="1">
<button class="quiet">Sign out everywhere</button></form>""",
    )


def _alert(problem: str) -> str:
    return f'<p class="alert" role="alert">{escape(problem)}</p>' if problem else ""


def _page(title: str, body: str, status: int = 200) -> HTMLResponse:
    heading = escape(title)
    return HTMLResponse(
        f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>{heading}</title>
<style>{STYLE}</style>
</head>
<body>
<main>
<h1>{heading}</h1>
{body}
</main>
</body>
</html>
""",
        status,
        PAGE_HEADERS,
    )
