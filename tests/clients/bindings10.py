"""Drives each binding through the official SDK for Python 1.x: A2A 1.0, and 0.3 by its own way.

    bindings10.py BASE TOKEN

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
from a2a.client.errors import A2AClientError
from a2a.helpers.proto_helpers import get_artifact_text, get_message_text, new_text_part
from a2a.types.a2a_pb2 import (
    AgentInterface,
    AuthenticationInfo,
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTasksRequest,
    Message,
    Role,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils.errors import (
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)

sys.path.insert(0, str(Path(__file__).parent))  # The interpreter is isolated.
from webhook import DEADLINE, Webhook, play_all, same  # noqa: E402

BINDINGS = ["JSONRPC", "HTTP+JSON", "GRPC"]
COMPLETED = TaskState.TASK_STATE_COMPLETED
WORKING = TaskState.TASK_STATE_WORKING
CANCELED = TaskState.TASK_STATE_CANCELED
INPUT_REQUIRED = TaskState.TASK_STATE_INPUT_REQUIRED
AUTH_REQUIRED = TaskState.TASK_STATE_AUTH_REQUIRED


def request(text, **fields):
    parts = [new_text_part(text)]
    said = Message(message_id=str(uuid.uuid4()), role=Role.ROLE_USER, parts=parts, **fields)
    return SendMessageRequest(message=said)


def output(task):
    same(task.status.state, COMPLETED)
    return "".join(get_artifact_text(artifact) for artifact in task.artifacts)


def channel(url, agent, token):
    """A channel whose every call carries the token; 0.3 names the agent here, too."""
    added = [("a2a-agent", agent)]
    if token:
        added.append(("authorization", f"Bearer {token}"))

    async def intercept(_self, go_on, details, sent):
        metadata = grpc.aio.Metadata(*(details.metadata or ()), *added)
        return await go_on(details._replace(metadata=metadata), sent)

    class Unary(grpc.aio.UnaryUnaryClientInterceptor):
        intercept_unary_unary = intercept

    class Stream(grpc.aio.UnaryStreamClientInterceptor):
        intercept_unary_stream = intercept

    return grpc.aio.insecure_channel(url, interceptors=[Unary(), Stream()])


class Service:
    """A service, through one binding of one version."""

    def __init__(self, base, token, binding, version="1.0"):
        self.base, self.token, self.binding, self.version = base, token, binding, version
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}

    async def agent(self, agent, streaming=True, polling=False):
        async with httpx.AsyncClient(timeout=DEADLINE) as http:
            card = await A2ACardResolver(http, f"{self.base}/agents/{agent}").get_agent_card()
        if self.version == "0.3":
            # The SDK takes 1.0 where it is offered, so that only this makes it speak 0.3.
            older = [way for way in card.supported_interfaces if way.protocol_version == "0.3"]
            if agent != "talk":
                # Without a host name of its own only metadata names such an agent over gRPC.
                url = self.base.removeprefix("http://")
                older.append(AgentInterface(protocol_binding="GRPC", protocol_version="0.3", url=url))
            del card.supported_interfaces[:]
            card.supported_interfaces.extend(older)
        config = ClientConfig(
            # The factory marks the client that it is given as one of 1.0.
            httpx_client=httpx.AsyncClient(headers=self.headers, timeout=DEADLINE),
            streaming=streaming,
            polling=polling,
            supported_protocol_bindings=[self.binding],
            grpc_channel_factory=lambda url: channel(url, agent, self.token),
        )
        return ClientFactory(config).create(card)


async def events_of(client, what):
    return [event async for event in client.send_message(what)]


async def sent(client, what):
    """The task that a message became, without a stream."""
    events = await events_of(client, what)
    same([event.WhichOneof("payload") for event in events], ["task"])
    return events[0].task


async def refused(action, kind, words=""):
    try:
        answer = await action
    except kind as error:
        assert words in str(error), f"not `{words}`: {error!r}"
    else:
        raise AssertionError(f"was answered: {answer!r}")


async def send(service):
    task = await sent(await service.agent("talk", streaming=False), request("Grüße"))
    same(output(task), "you said: Grüße")


async def stream(service):
    events = await events_of(await service.agent("talk"), request("streamed"))
    kinds = [event.WhichOneof("payload") for event in events]
    same(kinds[0], "task")
    same(kinds.count("task"), 1)
    updates = [event.status_update for event in events if event.HasField("status_update")]
    same((kinds[-1], updates[-1].status.state), ("status_update", COMPLETED))
    words = [get_message_text(update.status.message) for update in updates]
    assert "listening" in words, repr(words)
    made = [event.artifact_update for event in events if event.HasField("artifact_update")]
    same("".join(get_artifact_text(one.artifact) for one in made), "you said: streamed")
    same({update.task_id for update in [*updates, *made]}, {events[0].task.id})


async def get(service):
    client = await service.agent("talk", streaming=False)
    task = await sent(client, request("kept", context_id="bindings"))
    found = await client.get_task(GetTaskRequest(id=task.id, history_length=5))
    same(output(found), "you said: kept")
    same((found.context_id, get_message_text(found.history[0])), ("bindings", "kept"))
    await refused(client.get_task(GetTaskRequest(id=str(uuid.uuid4()))), TaskNotFoundError)


async def list_of_tasks(service):
    client = await service.agent("talk", streaming=False)
    context = str(uuid.uuid4())
    wanted = [(await sent(client, request("one", context_id=context))).id for _ in range(3)]
    first = await client.list_tasks(ListTasksRequest(context_id=context, page_size=2))
    same((len(first.tasks), first.total_size), (2, 3))
    same([len(task.artifacts) for task in first.tasks], [0, 0])
    more = ListTasksRequest(context_id=context, page_size=2, page_token=first.next_page_token)
    rest = await client.list_tasks(more)
    same([task.id for task in [*first.tasks, *rest.tasks]], wanted[::-1])
    same(rest.next_page_token, "")
    whole = ListTasksRequest(context_id=context, status=COMPLETED, include_artifacts=True)
    same([output(task) for task in (await client.list_tasks(whole)).tasks], ["you said: one"] * 3)


async def running(service, agent="sleep"):
    """A task that works until it is called off, and its client."""
    client = await service.agent(agent, streaming=False, polling=True)
    task = await sent(client, request("300"))
    for _ in range(400):
        found = await client.get_task(GetTaskRequest(id=task.id))
        if found.status.state == WORKING:
            return client, task
        await asyncio.sleep(0.05)  # The SDK has no other way to wait without streaming.
    raise AssertionError(f"still {found.status.state}")


async def cancel(service):
    client, task = await running(service)
    same((await client.cancel_task(CancelTaskRequest(id=task.id))).status.state, CANCELED)
    await refused(client.cancel_task(CancelTaskRequest(id=task.id)), TaskNotCancelableError)


async def team(service):
    """A team is one agent: one task, one stream, one cancellation."""
    task = await sent(await service.agent("crew", streaming=False), request("Grüße"))
    same(output(task), "you said: Grüße")
    events = await events_of(await service.agent("crew"), request("streamed"))
    same(events[-1].status_update.status.state, COMPLETED)
    updates = [event.status_update for event in events if event.HasField("status_update")]
    steps = [update.metadata["step"] for update in updates if "step" in update.metadata]
    ended = [step for step in steps if step["stage"] == "ended"]
    same([(step["hop"], step["outcome"]) for step in ended], [(1, "completed"), (2, "completed")])
    client, task = await running(service, "slow-crew")
    same((await client.cancel_task(CancelTaskRequest(id=task.id))).status.state, CANCELED)


async def subscribe(service):
    client, task = await running(service)
    streaming = await service.agent("sleep")
    events = []
    async for event in streaming.subscribe(SubscribeToTaskRequest(id=task.id)):
        events.append(event)
        if len(events) == 1:
            same((event.task.id, event.task.status.state), (task.id, WORKING))
            await client.cancel_task(CancelTaskRequest(id=task.id))
    same(events[-1].status_update.status.state, CANCELED)
    again = anext(aiter(streaming.subscribe(SubscribeToTaskRequest(id=task.id))))
    await refused(again, UnsupportedOperationError)


async def input_required(service):
    client = await service.agent("ask", streaming=False)
    task = await sent(client, request("go"))
    same(task.status.state, INPUT_REQUIRED)
    same(get_message_text(task.status.message), "which way?")
    done = await sent(client, request("left", task_id=task.id, context_id=task.context_id))
    same((done.id, output(done)), (task.id, "going left"))
    streaming = await service.agent("ask")
    events = await events_of(streaming, request("go"))
    asked = events[-1].status_update
    same((asked.status.state, get_message_text(asked.status.message)), (INPUT_REQUIRED, "which way?"))
    events = await events_of(streaming, request("right", task_id=asked.task_id))
    same(events[-1].status_update.status.state, COMPLETED)


async def auth_required(service):
    client = await service.agent("guard", streaming=False)
    task = await sent(client, request("go"))
    same(task.status.state, AUTH_REQUIRED)
    text, page = task.status.message.parts
    same((text.text, page.url), ("Sign in.", "https://login.example.org/device"))
    waiting = ListTasksRequest(context_id=task.context_id, status=AUTH_REQUIRED)
    same([one.id for one in (await client.list_tasks(waiting)).tasks], [task.id])
    done = await sent(client, request("done", task_id=task.id, context_id=task.context_id))
    same((done.id, output(done)), (task.id, "signed in: done"))
    streaming = await service.agent("guard")
    asked = (await events_of(streaming, request("go")))[-1].status_update
    same(asked.status.state, AUTH_REQUIRED)
    events = await events_of(streaming, request("done", task_id=asked.task_id))
    same(events[-1].status_update.status.state, COMPLETED)


async def push(service):
    async with Webhook() as webhook:
        client, task = await running(service)
        proof = AuthenticationInfo(scheme="Bearer", credentials="proof")
        wanted = TaskPushNotificationConfig(
            task_id=task.id, id="one", url=webhook.url, token="mark", authentication=proof
        )
        made = await client.create_task_push_notification_config(wanted)
        same((made.task_id, made.id, made.url), (task.id, "one", webhook.url))
        one = {"task_id": task.id, "id": "one"}
        found = await client.get_task_push_notification_config(
            GetTaskPushNotificationConfigRequest(**one)
        )
        same(found.url, webhook.url)
        listed = ListTaskPushNotificationConfigsRequest(task_id=task.id)
        found = await client.list_task_push_notification_configs(listed)
        same([config.id for config in found.configs], ["one"])
        await client.cancel_task(CancelTaskRequest(id=task.id))
        posts = await webhook.until(lambda post: "TASK_STATE_CANCELED" in json.dumps(post[2]))
        path, headers, told = posts[-1]
        same((path, told["statusUpdate"]["taskId"]), ("/told", task.id))
        same(headers["authorization"], "Bearer proof")
        await client.delete_task_push_notification_config(
            DeleteTaskPushNotificationConfigRequest(**one)
        )
        found = await client.list_task_push_notification_configs(listed)
        same(len(found.configs), 0)


async def refused_tokens(service):
    for token in ["0" * 64, None]:
        stranger = Service(service.base, token, service.binding, service.version)
        words = "UNAUTHENTICATED" if service.binding == "GRPC" else "401"
        for streaming in [False, True]:
            client = await stranger.agent("talk", streaming=streaming)
            await refused(events_of(client, request("hello")), A2AClientError, words)


async def extended_card(service):
    card = await (await service.agent("talk")).get_extended_agent_card(
        GetExtendedAgentCardRequest()
    )
    same(card.name, "talk")


async def compatible(service):
    """0.3, as the SDK of 1.x speaks it."""
    task = await sent(await service.agent("talk", streaming=False), request("older"))
    same(output(task), "you said: older")
    events = await events_of(await service.agent("talk"), request("older"))
    same(events[-1].status_update.status.state, COMPLETED)
    client, task = await running(service)
    same((await client.cancel_task(CancelTaskRequest(id=task.id))).status.state, CANCELED)
    task = await sent(await service.agent("crew", streaming=False), request("older"))
    same(output(task), "you said: older")


SCENARIOS = [
    send,
    stream,
    get,
    list_of_tasks,
    cancel,
    team,
    subscribe,
    input_required,
    auth_required,
    push,
    refused_tokens,
    extended_card,
]


async def main(base, token):
    report = {}
    for binding in BINDINGS:
        report |= await play_all(SCENARIOS, binding, Service(base, token, binding))
        older = Service(base, token, binding, "0.3")
        report |= await play_all([compatible], f"{binding} 0.3", older)
    print(json.dumps(report, indent=1, ensure_ascii=False))


asyncio.run(main(*sys.argv[1:]))
