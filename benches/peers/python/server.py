"""Serves a program through the SDK of A2A for Python: it is given a text, and what it says is the artifact.

    server.py PROGRAM

Prints its address and what it is made of in one line, and serves until it is ended.
"""

import asyncio
import platform
import socket
import sys
from importlib.metadata import version

import uvicorn
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandlerV2
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Part,
    Task,
    TaskState,
    TaskStatus,
)
from starlette.applications import Starlette


class Program(AgentExecutor):
    """The program of this absolute path, once for each message."""

    def __init__(self, path):
        self.path = path

    async def execute(self, context, event_queue):
        task, conversation = context.task_id, context.context_id
        status = TaskStatus(state=TaskState.TASK_STATE_WORKING)
        await event_queue.enqueue_event(
            Task(id=task, context_id=conversation, status=status, history=[context.message])
        )
        updates = TaskUpdater(event_queue, task, conversation)
        code, said = await self.run(context.get_user_input())
        if code != 0:
            await updates.failed()
            return
        await updates.add_artifact([Part(text=said)])
        await updates.complete()

    async def run(self, text):
        pipes = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE, "stderr": asyncio.subprocess.PIPE}
        process = await asyncio.create_subprocess_exec(self.path, **pipes)
        try:
            said, _ = await process.communicate(text.encode())
        except asyncio.CancelledError:
            process.kill()
            raise
        return process.returncode, said.decode()

    async def cancel(self, context, event_queue):
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def served(path, address):
    skill = AgentSkill(id="say", name="Say", description="Says what a program says.", tags=["text"])
    interface = AgentInterface(url=f"http://{address}/", protocol_binding="JSONRPC", protocol_version="1.0")
    card = AgentCard(
        name="program",
        description="Says what a program says.",
        version="1",
        supported_interfaces=[interface],
        capabilities=AgentCapabilities(),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[skill],
    )
    handler = DefaultRequestHandlerV2(Program(path), InMemoryTaskStore(), card)
    return Starlette(routes=[*create_jsonrpc_routes(handler, "/"), *create_agent_card_routes(card)])


def main():
    # By its protocol asyncio knows that lines may be told not to delay what is small.
    listener = socket.socket(proto=socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen(1024)
    address = "{}:{}".format(*listener.getsockname())
    packages = ", ".join(f"{name} {version(name)}" for name in ("a2a-sdk", "uvicorn", "httptools"))
    # Programs start faster by the loop of Python itself than by uvloop.
    config = uvicorn.Config(served(sys.argv[1], address), loop="asyncio", http="httptools", log_level="warning")
    server = uvicorn.Server(config)
    print(f"{address} {packages}, Python {platform.python_version()}", flush=True)
    server.run(sockets=[listener])


if __name__ == "__main__":
    main()
