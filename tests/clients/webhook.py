"""A webhook on loopback, and how scenarios are played: what every client in Python shares."""

import asyncio
import json
import traceback

DEADLINE = 20.0


def same(found, wanted):
    assert found == wanted, f"{found!r} instead of {wanted!r}"


class Webhook:
    """Listens on a free port; gives what is posted to it: path, headers, and the JSON in it."""

    async def __aenter__(self):
        self.posts = asyncio.Queue()
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self.server.sockets[0].getsockname()[1]}/told"
        return self

    async def __aexit__(self, *_):
        self.server.close()

    async def serve(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        lines = (line.split(": ", 1) for line in head[1:] if line)
        headers = {name.lower(): value for name, value in lines}
        body = await reader.readexactly(int(headers["content-length"]))
        self.posts.put_nowait((head[0].split()[1], headers, json.loads(body)))
        writer.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    async def until(self, holds):
        """The first post of which something holds, and those before it."""
        posts = []
        while not posts or not holds(posts[-1]):
            posts.append(await asyncio.wait_for(self.posts.get(), DEADLINE))
        return posts


async def play(scenario, *given):
    """"ok", or what went wrong and where."""
    try:
        await asyncio.wait_for(scenario(*given), 2 * DEADLINE)
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        here = [frame.lineno for frame in frames if "clients" in frame.filename]
        return f"line {here}: {type(error).__name__}: {error}"
    return "ok"


async def play_all(scenarios, binding, *given):
    """Plays each scenario; what is told of each stands under its name and the binding's."""
    told = {}
    for scenario in scenarios:
        told[f"{binding} {scenario.__name__}"] = await play(scenario, *given)
    return told
