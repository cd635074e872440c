"""Drives a service through the official A2A SDK for Python, as its users do.

    python03.py shipped BASE TOKEN             the shipped configuration
    python03.py own BASE TOKEN STRANGER        the configuration of own.toml, and a second token

Prints one JSON object: for each scenario "ok" or what went wrong.
"""

import asyncio
import json
import sys
import time
import traceback
import uuid

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientHTTPError, A2AClientJSONRPCError
from a2a.types import (
    InvalidParamsError,
    Message,
    MessageSendConfiguration,
    Part,
    Role,
    Task,
    TaskIdParams,
    TaskNotCancelableError,
    TaskNotFoundError,
    TaskQueryParams,
    TaskState,
    TextPart,
    TransportProtocol,
)

DEADLINE = 20.0
FORBIDDEN = -32059
PARAMETERS = "https://algonius.dev/a2a/ext/parameters/v1"
ENDED = {TaskState.completed, TaskState.canceled, TaskState.failed, TaskState.rejected}


def message(text, **fields):
    """A message of a user with one part of text."""
    parts = [Part(root=TextPart(text=text))]
    return Message(message_id=str(uuid.uuid4()), role=Role.user, parts=parts, **fields)


def same(found, wanted):
    assert found == wanted, f"{found!r} instead of {wanted!r}"


def output(task):
    """The text that the program wrote."""
    same(task.status.state, TaskState.completed)
    return "".join(part.root.text for artifact in task.artifacts for part in artifact.parts)


class Agent:
    """An agent behind a card, reached through the SDK's own client."""

    def __init__(self, http, card, polling):
        self.card = card
        self.http = http
        config = ClientConfig(
            httpx_client=http,
            streaming=False,
            polling=polling,
            supported_transports=[TransportProtocol.jsonrpc],
        )
        self.client = ClientFactory(config).create(card)

    async def send(self, sent, **configuration):
        """The task that a message became."""
        given = MessageSendConfiguration(**configuration) if configuration else None
        events = [event async for event in self.client.send_message(sent, configuration=given)]
        same(len(events), 1)
        task, update = events[0]
        assert isinstance(task, Task) and update is None, repr(events)
        return task

    async def get(self, task, **query):
        return await self.client.get_task(TaskQueryParams(id=task, **query))

    async def cancel(self, task):
        return await self.client.cancel_task(TaskIdParams(id=task))

    async def until(self, task, states):
        """Asks until the task is in one of the states."""
        deadline = time.monotonic() + DEADLINE
        while (found := await self.get(task)).status.state not in states:
            assert time.monotonic() < deadline, f"still {found.status.state}"
            await asyncio.sleep(0.05)  # The SDK has no other way to wait without streaming.
        return found


class Service:
    """A service, as the holder of one token sees it."""

    def __init__(self, base, token):
        self.base = base
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.http = httpx.AsyncClient(headers=headers, timeout=DEADLINE)

    async def agent(self, agent, polling=False):
        """An agent whose card a client without any credentials has resolved."""
        async with httpx.AsyncClient(timeout=DEADLINE) as http:
            card = await A2ACardResolver(http, f"{self.base}/agents/{agent}").get_agent_card()
        return Agent(self.http, card, polling)


async def refused(action, code):
    """Awaits a call that must be refused with this code; gives the error."""
    try:
        answer = await action
    except A2AClientJSONRPCError as error:
        same(error.error.code, code)
        assert error.error.message, "an error without a sentence"
        return error.error
    raise AssertionError(f"was answered: {answer!r}")


NOT_FOUND = TaskNotFoundError().code
NOT_CANCELABLE = TaskNotCancelableError().code
INVALID = InvalidParamsError().code


async def card_of_an_agent(service):
    card = (await service.agent("echo")).card
    same(card.name, "Echo")
    same(card.url, f"{service.base}/agents/echo/v1")
    same(card.preferred_transport, TransportProtocol.jsonrpc)
    same([skill.id for skill in card.skills], ["echo"])
    same(card.security, [{"bearer": []}])
    same(card.security_schemes["bearer"].root.scheme, "bearer")


async def card_of_the_host_is_the_default_agents(service):
    async with httpx.AsyncClient(timeout=DEADLINE) as http:
        card = await A2ACardResolver(http, service.base).get_agent_card()
    same(card.url, f"{service.base}/agents/echo/v1")


async def card_of_an_unknown_agent(service):
    try:
        await service.agent("nobody")
    except A2AClientHTTPError as error:
        same(error.status_code, 404)
    else:
        raise AssertionError("there is a card of nobody")


async def echo_answers_by_standard_output(service):
    text = "Grüße, 世界 👋\n\ttwo lines"
    task = await (await service.agent("echo")).send(message(text))
    same(output(task), text)
    same(task.kind, "task")
    assert task.context_id and task.status.timestamp, repr(task)


async def sort_answers_by_file(service):
    task = await (await service.agent("sort")).send(message("pear\napple\nfig\n"))
    same(output(task), "apple\nfig\npear\n")


async def word_count_answers(service):
    task = await (await service.agent("word-count")).send(message("one two three\n"))
    same(output(task).strip(), "3")


async def greet_answers_by_arguments(service):
    agent = await service.agent("greet")
    same(output(await agent.send(message("Ann"))), "Hello, Ann!\n")
    sent = message("$(id); 'Ann'", metadata={PARAMETERS: {"greeting": "Ahoy"}})
    same(output(await agent.send(sent)), "Ahoy, $(id); 'Ann'!\n")


async def a_megabyte_comes_back_whole(service):
    text = "0123456789abcde\n" * 65536
    same(output(await (await service.agent("echo")).send(message(text))), text)


async def several_parts_are_one_text(service):
    sent = message("one")
    sent.parts.append(Part(root=TextPart(text="two")))
    same(output(await (await service.agent("echo")).send(sent)), "one\ntwo")


async def an_empty_text_is_a_text(service):
    same(output(await (await service.agent("echo")).send(message(""))), "")


async def non_blocking_then_get(service):
    agent = await service.agent("echo", polling=True)
    task = await agent.send(message("later"))
    done = await agent.until(task.id, ENDED)
    same(output(done), "later")
    same(done.context_id, task.context_id)


async def history_of_a_task(service):
    agent = await service.agent("echo")
    sent = message("said", context_id="conversation-1")
    task = await agent.send(sent)
    same(task.context_id, "conversation-1")
    for query, length in [({}, 1), ({"history_length": 5}, 1), ({"history_length": 0}, 0)]:
        found = await agent.get(task.id, **query)
        same(len(found.history or []), length)
        for said in found.history or []:
            same((said.message_id, said.role), (sent.message_id, Role.user))
            same((said.task_id, said.context_id), (task.id, "conversation-1"))
            same(said.parts[0].root.text, "said")
        same(output(found), "said")


async def cancel_of_an_ended_task(service):
    agent = await service.agent("echo")
    task = await agent.send(message("done"))
    await refused(agent.cancel(task.id), NOT_CANCELABLE)
    same(output(await agent.get(task.id)), "done")


async def unknown_tasks(service):
    agent = await service.agent("echo")
    for unknown in [str(uuid.uuid4()), "no-such-task", ""]:
        await refused(agent.get(unknown), NOT_FOUND)
        await refused(agent.cancel(unknown), NOT_FOUND)
    await refused(agent.send(message("on", task_id=str(uuid.uuid4()))), NOT_FOUND)


async def a_task_of_another_agent(service):
    task = await (await service.agent("echo")).send(message("mine"))
    await refused((await service.agent("sort")).get(task.id), NOT_FOUND)


async def bad_tokens(service):
    for token in ["0" * 64, "short", None]:
        stranger = Service(service.base, token)
        agent = await stranger.agent("echo")
        for call in [agent.send, lambda _: agent.get("any"), lambda _: agent.cancel("any")]:
            try:
                await call(message("hello"))
            except A2AClientHTTPError as error:
                same(error.status_code, 401)
            else:
                raise AssertionError(f"the token {token!r} was let in")
        await stranger.http.aclose()


async def the_same_message_twice(service):
    agent = await service.agent("echo")
    sent = message("once")
    first = await agent.send(sent)
    again = await agent.send(sent)
    same(again.id, first.id)
    same(output(again), "once")
    other = await agent.send(message("once"))
    assert other.id != first.id, "another message became the same task"


async def invalid_requests(service):
    agent = await service.agent("echo")
    sent = message("gone")
    sent.parts = []
    await refused(agent.send(sent), INVALID)
    await refused(agent.send(message("hello"), history_length=-1), INVALID)
    by_agent = message("hello")
    by_agent.role = Role.agent
    await refused(agent.send(by_agent), INVALID)
    sent = message("hello", metadata={PARAMETERS: ["greeting"]})
    await refused(agent.send(sent), INVALID)


async def cancel_of_a_running_task(service, _stranger):
    agent = await service.agent("sleep", polling=True)
    began = time.monotonic()
    task = await agent.send(message("300"))
    await agent.until(task.id, {TaskState.working})
    same((await agent.cancel(task.id)).status.state, TaskState.canceled)
    same((await agent.get(task.id)).status.state, TaskState.canceled)
    await refused(agent.cancel(task.id), NOT_CANCELABLE)
    assert time.monotonic() - began < DEADLINE, "the cancellation took too long"


async def cancel_of_a_queued_task(service, _stranger):
    agent = await service.agent("sleep-alone", polling=True)
    running = await agent.send(message("300"))
    await agent.until(running.id, {TaskState.working})
    queued = await agent.send(message("0"))
    same((await agent.get(queued.id)).status.state, TaskState.submitted)
    same((await agent.cancel(queued.id)).status.state, TaskState.canceled)
    same((await agent.get(running.id)).status.state, TaskState.working)
    same((await agent.cancel(running.id)).status.state, TaskState.canceled)
    same(output(await (await service.agent("sleep-alone")).send(message("0"))), "")


async def who_waits_is_told_of_a_cancellation(service, _stranger):
    agent = await service.agent("sleep")
    sent = message("300")
    waiting = asyncio.create_task(agent.send(sent))
    polling = await service.agent("sleep", polling=True)
    joined = await polling.send(sent)
    await polling.until(joined.id, {TaskState.working})
    await polling.cancel(joined.id)
    told = await waiting
    same((told.id, told.status.state), (joined.id, TaskState.canceled))


async def a_failing_agent(service, _stranger):
    task = await (await service.agent("fail")).send(message("hello"))
    same(task.status.state, TaskState.failed)
    told = task.status.message
    same((told.role, told.task_id), (Role.agent, task.id))
    assert told.parts[0].root.text, "no word about the failure"
    assert told.metadata["code"] and told.metadata["hint"], repr(told.metadata)
    found = await (await service.agent("fail")).get(task.id)
    same(found.status, task.status)


async def a_task_of_somebody_else(service, stranger):
    mine = await service.agent("sleep", polling=True)
    task = await mine.send(message("300"))
    theirs = await stranger.agent("sleep", polling=True)
    await refused(theirs.get(task.id), NOT_FOUND)
    await refused(theirs.cancel(task.id), NOT_FOUND)
    same((await mine.cancel(task.id)).status.state, TaskState.canceled)


async def the_same_message_of_two_callers(service, stranger):
    sent = message("0")
    mine = await (await service.agent("sleep")).send(sent)
    theirs = await (await stranger.agent("sleep")).send(sent)
    assert mine.id != theirs.id, "two callers share a task"


async def a_token_for_one_agent_only(_service, stranger):
    await refused((await stranger.agent("fail")).send(message("hello")), FORBIDDEN)


SHIPPED = [
    card_of_an_agent,
    card_of_the_host_is_the_default_agents,
    card_of_an_unknown_agent,
    echo_answers_by_standard_output,
    sort_answers_by_file,
    word_count_answers,
    greet_answers_by_arguments,
    a_megabyte_comes_back_whole,
    several_parts_are_one_text,
    an_empty_text_is_a_text,
    non_blocking_then_get,
    history_of_a_task,
    cancel_of_an_ended_task,
    unknown_tasks,
    a_task_of_another_agent,
    bad_tokens,
    the_same_message_twice,
    invalid_requests,
]
OWN = [
    cancel_of_a_running_task,
    cancel_of_a_queued_task,
    who_waits_is_told_of_a_cancellation,
    a_failing_agent,
    a_task_of_somebody_else,
    the_same_message_of_two_callers,
    a_token_for_one_agent_only,
]


async def play(scenario, services):
    """"ok", or what went wrong and where."""
    try:
        await asyncio.wait_for(scenario(*services), 2 * DEADLINE)
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        here = [frame.lineno for frame in frames if frame.filename == __file__]
        return f"line {here}: {type(error).__name__}: {error}"
    return "ok"


async def main(which, base, *tokens):
    services = [Service(base, token) for token in tokens]
    scenarios = {"shipped": SHIPPED, "own": OWN}[which]
    report = {scenario.__name__: await play(scenario, services) for scenario in scenarios}
    for service in services:
        await service.http.aclose()
    print(json.dumps(report, indent=1, ensure_ascii=False))


asyncio.run(main(*sys.argv[1:]))
