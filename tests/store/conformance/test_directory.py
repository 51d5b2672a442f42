"""The directory on its own: first start, and two first starts at once."""

import asyncio
from collections.abc import Callable

from ade.app.directory import Directory
from ade.store.directory import key_digest, new_secret

Open = Callable[[], Directory]


async def test_the_first_start_makes_a_key_and_shows_it_once(directory: Directory) -> None:
    secret = directory.bootstrap()
    assert secret is not None
    assert directory.bootstrap() is None
    holder = await directory.find_key(key_digest(secret))
    assert holder is not None
    assert holder.operator
    assert holder.user_name == "admin"
    default = await directory.find_workspace("default")
    assert default is not None
    assert await directory.find_workspace(default.id.upper()) == default


async def test_a_given_key_is_added_also_later(directory: Directory) -> None:
    directory.bootstrap()
    for _ in range(2):
        assert directory.bootstrap("given") is None
    holder = await directory.find_key(key_digest("given"))
    assert holder is not None
    assert holder.operator


async def test_two_servers_that_start_at_once_make_one_key(open_directory: Open) -> None:
    directories = [open_directory() for _ in range(8)]
    made = await asyncio.gather(*[asyncio.to_thread(d.bootstrap) for d in directories])
    assert len([secret for secret in made if secret]) == 1
    assert len(await directories[0].list_workspaces()) == 1


async def test_members_made_at_once_are_one_user(open_directory: Open) -> None:
    directories = [open_directory() for _ in range(4)]
    directories[0].bootstrap()
    ws = await directories[0].find_workspace("default")
    assert ws is not None
    made = await asyncio.gather(*[d.set_member(ws.id, "ann", "viewer") for d in directories])
    assert len({member.user_id for member in made}) == 1


def test_keys_hold_256_random_bits() -> None:
    made = {new_secret() for _ in range(1000)}
    assert len(made) == 1000
    assert {len(secret) for secret in made} == {47}
    assert all(secret.startswith("ade_") and secret[4:].isalnum() for secret in made)
