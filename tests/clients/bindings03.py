"""Drives each binding of A2A 0.3 through the official SDK for Python 0.3.

    bindings03.py BASE TOKEN

Needs the configuration of own.toml. Prints one JSON object: for each scenario "ok" or what went
wrong.
"""

import asyncio
import json
import sys
import uuid
from pathlib import Path

import grpc
import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientHTTPError, A2AClientJSONRPCError
from a2a.types import (
    AgentInterface,
    GetTaskPushNotificationConfigParams,
    Message,
    Part,
    PushNotificationAuthenticationInfo,
    PushNotificationConfig,
    Role,
    Task,
    TaskIdParams,
    TaskPushNotificationConfig,
    TaskQueryParams,
    TaskState,
    TextPart,
    TransportProtocol,
)

sys.path.insert(0, str(Path(__file__).parent))  # The interpreter is isolated.
from webhook import DEADLINE, Webhook, play_all, same  # noqa: E402

BINDINGS = [TransportProtocol.jsonrpc, TransportProtocol.http_json, TransportProtocol.grpc]


def message(text, **fields):
    parts = [Part(root=TextPart(text=text))]
    return Message(message_id=str(uuid.uuid4()), role=Role.user, parts=parts, **fields)


def output(task):
    same(task.status.state, TaskState.completed)
    return "".join(part.root.text for artifact in task.artifacts for part in artifact.parts)


def channel(url, agent, token):
    """A channel whose every call names agent and token; 0.3 has no other way than metadata."""
    added = [("a2a-agent", agent)]
    if token:
        added.append(("authorization", f"Bearer {token}"))

    async def intercept(_self, go_on, details, request):
        metadata = grpc.aio.Metadata(*(details.metadata or ()), *added)
        return await go_on(details._replace(metadata=metadata), request)

    class Unary(grpc.aio.UnaryUnaryClientInterceptor):
        intercept_unary_unary = intercept

    class Stream(grpc.aio.UnaryStreamClientInterceptor):
        intercept_unary_stream = intercept

    return grpc.aio.insecure_channel(url, interceptors=[Unary(), Stream()])


class Service:
    """A service, through one binding."""

    def __init__(self, base, token, binding):
        self.base, self.token, self.binding = base, token, binding
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.http = httpx.AsyncClient(headers=headers, timeout=DEADLINE)

    async def agent(self, agent, streaming=True, polling=False):
        card = await A2ACardResolver(self.http, f"{self.base}/agents/{agent}").get_agent_card()
        if self.binding == TransportProtocol.grpc:
            # Not in the card: without a host name of its own only metadata names the agent.
            url = self.base.removeprefix("http://")
            more = AgentInterface(transport=self.binding, url=url)
            card.additional_interfaces = [*(card.additional_interfaces or []), more]
        config = ClientConfig(
            httpx_client=self.http,
            streaming=streaming,
            polling=polling,
            supported_transports=[self.binding],
            grpc_channel_factory=lambda url: channel(url, agent, self.token),
        )
        return ClientFactory(config).create(card)


async def sent(client, what):
    """The task that a message became, and the events on the way."""
    events = [event async for event in client.send_message(what)]
    assert events, "no event at all"
    return events[-1][0], events


async def refused(action, code, status, name):
    """Awaits a call that must be refused, in the words of each binding."""
    try:
        answer = await action
    except A2AClientJSONRPCError as error:
        same(error.error.code, code)
    except A2AClientHTTPError as error:
        same(error.status_code, status)
    except grpc.aio.AioRpcError as error:
        same(error.code(), name)
    else:
        raise AssertionError(f"was answered: {answer!r}")


NOT_FOUND = (-32001, 404, grpc.StatusCode.NOT_FOUND)


async def send(service):
    task, events = await sent(await service.agent("talk", streaming=False), message("Grüße"))
    same(len(events), 1)
    same(output(task), "you said: Grüße")


async def stream(service):
    task, events = await sent(await service.agent("talk"), message("streamed"))
    same(output(task), "you said: streamed")
    updates = [update for _, update in events if update is not None]
    assert isinstance(events[0][0], Task) and events[0][1] is None, repr(events[0])
    finals = [getattr(update, "final", None) for update in updates]
    same(finals[-1], True)
    same(finals.count(True), 1)
    assert any(update.kind == "artifact-update" for update in updates), repr(updates)
    said = [u.status.message for u in updates if u.kind == "status-update"]
    words = [word.parts[0].root.text for word in said if word and word.parts]
    assert "listening" in words, repr(said)
    same({update.task_id for update in updates}, {task.id})


async def get(service):
    client = await service.agent("talk", streaming=False)
    task, _ = await sent(client, message("kept", context_id="bindings"))
    found = await client.get_task(TaskQueryParams(id=task.id, history_length=5))
    same(output(found), "you said: kept")
    same((found.context_id, found.history[0].parts[0].root.text), ("bindings", "kept"))
    await refused(client.get_task(TaskQueryParams(id=str(uuid.uuid4()))), *NOT_FOUND)


async def running(service, agent="sleep"):
    """A task that works until it is called off, and its client."""
    client = await service.agent(agent, streaming=False, polling=True)
    task, _ = await sent(client, message("300"))
    for _ in range(400):
        found = await client.get_task(TaskQueryParams(id=task.id))
        if found.status.state == TaskState.working:
            return client, task
        await asyncio.sleep(0.05)  # The SDK has no other way to wait without streaming.
    raise AssertionError(f"still {found.status.state}")


async def cancel(service):
    client, task = await running(service)
    same((await client.cancel_task(TaskIdParams(id=task.id))).status.state, TaskState.canceled)
    again = client.cancel_task(TaskIdParams(id=task.id))
    await refused(again, -32002, 409, grpc.StatusCode.FAILED_PRECONDITION)


async def team(service):
    """A team is one agent: one task, one stream, one cancellation."""
    task, _ = await sent(await service.agent("crew", streaming=False), message("Grüße"))
    same(output(task), "you said: Grüße")
    task, events = await sent(await service.agent("crew"), message("streamed"))
    same(output(task), "you said: streamed")
    steps = [update.metadata.get("step") for _, update in events if update and update.metadata]
    ended = [step for step in steps if step and step.get("stage") == "ended"]
    same([(step["hop"], step["outcome"]) for step in ended], [(1, "completed"), (2, "completed")])
    client, task = await running(service, "slow-crew")
    same((await client.cancel_task(TaskIdParams(id=task.id))).status.state, TaskState.canceled)


async def resubscribe(service):
    client, task = await running(service)
    streaming = await service.agent("sleep")
    states = []
    async for found, update in streaming.resubscribe(TaskIdParams(id=task.id)):
        states.append(found.status.state)
        if len(states) == 1:
            assert update is None, f"the first is not the task: {update!r}"
            await client.cancel_task(TaskIdParams(id=task.id))
    same((states[0], states[-1]), (TaskState.working, TaskState.canceled))


async def input_required(service):
    for streaming in [False, True]:
        client = await service.agent("ask", streaming=streaming)
        task, _ = await sent(client, message("go"))
        same(task.status.state, TaskState.input_required)
        same(task.status.message.parts[0].root.text, "which way?")
        more = message("left", task_id=task.id, context_id=task.context_id)
        done, _ = await sent(client, more)
        same(done.id, task.id)
        found = await client.get_task(TaskQueryParams(id=task.id))
        same(output(found), "going left")


async def auth_required(service):
    for streaming in [False, True]:
        client = await service.agent("guard", streaming=streaming)
        task, _ = await sent(client, message("go"))
        same(task.status.state, TaskState.auth_required)
        text, page = task.status.message.parts
        same((text.root.text, page.root.file.uri), ("Sign in.", "https://login.example.org/device"))
        more = message("done", task_id=task.id, context_id=task.context_id)
        done, _ = await sent(client, more)
        same(done.id, task.id)
        found = await client.get_task(TaskQueryParams(id=task.id))
        same(output(found), "signed in: done")


async def push(service):
    async with Webhook() as webhook:
        client, task = await running(service)
        proof = PushNotificationAuthenticationInfo(schemes=["Bearer"], credentials="proof")
        config = PushNotificationConfig(
            id="one", url=webhook.url, token="mark", authentication=proof
        )
        wanted = TaskPushNotificationConfig(task_id=task.id, push_notification_config=config)
        made = await client.set_task_callback(wanted)
        same((made.task_id, made.push_notification_config.url), (task.id, webhook.url))
        one = GetTaskPushNotificationConfigParams(id=task.id, push_notification_config_id="one")
        found = await client.get_task_callback(one)
        same(found.push_notification_config.id, "one")
        await client.cancel_task(TaskIdParams(id=task.id))
        posts = await webhook.until(lambda post: post[2]["status"]["state"] == "canceled")
        path, headers, told = posts[-1]
        same((path, told["id"], told["kind"]), ("/told", task.id, "task"))
        same(headers["x-a2a-notification-token"], "mark")
        same(headers["authorization"], "Bearer proof")


async def refused_tokens(service):
    for token in ["0" * 64, None]:
        stranger = Service(service.base, token, service.binding)
        for streaming in [False, True]:
            client = await stranger.agent("talk", streaming=streaming)
            name = grpc.StatusCode.UNAUTHENTICATED
            await refused(sent(client, message("hello")), None, 401, name)
        await stranger.http.aclose()


async def extended_card(service):
    card = await (await service.agent("talk")).get_card()
    same(card.name, "talk")


SCENARIOS = [
    send,
    stream,
    get,
    cancel,
    team,
    resubscribe,
    input_required,
    auth_required,
    push,
    refused_tokens,
    extended_card,
]


async def main(base, token):
    report = {}
    for binding in BINDINGS:
        service = Service(base, token, binding)
        report |= await play_all(SCENARIOS, binding.value, service)
        await service.http.aclose()
    print(json.dumps(report, indent=1, ensure_ascii=False))


asyncio.run(main(*sys.argv[1:]))
