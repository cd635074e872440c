"""Frameworks that call remote agents, each as its users do, and the faults of them that docs/clients.md names.

    frameworks.py WHICH BASE TOKEN

WHICH is 0.3 or 1.0: the generation of A2A that the installed frameworks speak. Needs the configuration of
own.toml. Prints one JSON object: for each scenario "ok" or what went wrong. A scenario of a fault is "ok" while the
fault is there; one that has gone says so, for docs/clients.md to be corrected.
"""

import asyncio
import json
import subprocess
import sys
import uuid
import warnings
from pathlib import Path

import httpx

sys.path.insert(0, str(Path(__file__).parent))  # The interpreter is isolated.
from webhook import DEADLINE, play_all, same  # noqa: E402

warnings.simplefilter("ignore")  # All of them call their support of A2A an experiment.


class Service:
    def __init__(self, base, token):
        self.base, self.token = base, token
        self.headers = {"Authorization": f"Bearer {token}"}

    def http(self):
        return httpx.AsyncClient(headers=self.headers, timeout=DEADLINE)

    def agent(self, agent):
        return f"{self.base}/agents/{agent}"


def gone(what):
    raise AssertionError(f"the fault has gone, correct docs/clients.md: {what}")


# --- Google ADK ----------------------------------------------------------------------------------


async def adk_events(service, agent):
    from google.adk.agents.remote_a2a_agent import RemoteA2aAgent
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    card = f"{service.agent(agent)}/.well-known/agent-card.json"
    remote = RemoteA2aAgent(name="remote", agent_card=card, httpx_client=service.http())
    runner = InMemoryRunner(agent=remote, app_name="app")
    session = await runner.session_service.create_session(app_name="app", user_id="user")
    said = types.Content(role="user", parts=[types.Part(text="tea")])
    run = runner.run_async(user_id="user", session_id=session.id, new_message=said)
    return [event async for event in run]


async def adk_with_card_bindings(service):
    events = await adk_events(service, "listed")
    same([event.error_message for event in events if event.error_message], [])
    parts = [part for event in events if event.content for part in event.content.parts or []]
    same("".join(part.text or "" for part in parts), "tea")


async def adk_refuses_host_and_port(service):
    said = " ".join(str(event.error_message) for event in await adk_events(service, "talk"))
    if "Agent card RPC URL must use https" not in said:
        gone(f"ADK takes a card with host:port: {said}")


# --- Microsoft Agent Framework -------------------------------------------------------------------


async def agent_framework(service):
    from a2a.client import A2ACardResolver
    from agent_framework.a2a import A2AAgent

    http = service.http()
    card = await A2ACardResolver(http, service.agent("talk")).get_agent_card()
    agent = A2AAgent(name="talk", agent_card=card, http_client=http)
    same((await agent.run("tea")).text, "you said: tea")


# --- Strands Agents ------------------------------------------------------------------------------


async def strands(service):
    from a2a.client import ClientConfig
    from strands.agent.a2a_agent import A2AAgent

    config = ClientConfig(httpx_client=service.http(), streaming=True)
    agent = A2AAgent(endpoint=service.agent("talk"), client_config=config)
    result = await agent.invoke_async("tea")
    same(result.message["content"], [{"text": "you said: tea"}])


# --- fasta2a -------------------------------------------------------------------------------------


def fasta2a_client(service, agent="listed", **more):
    from fasta2a.client import A2AClient

    return A2AClient(service.agent(agent) + "/v1", service.http(), **more)


def fasta2a_message():
    part = {"kind": "text", "text": "tea"}
    return {"kind": "message", "role": "user", "message_id": str(uuid.uuid4()), "parts": [part]}


async def fasta2a_of_0_3(service):
    client = fasta2a_client(service)
    task = (await client.send_message(fasta2a_message()))["result"]
    same(task["status"]["state"], "completed")
    same(task["artifacts"][0]["parts"][0]["text"], "tea")
    found = (await client.get_task(task["id"]))["result"]
    same((found["id"], found["status"]["state"]), (task["id"], "completed"))


async def fasta2a_reads_no_other_words(service):
    try:
        await fasta2a_client(service).get_task(str(uuid.uuid4()))
    except ValueError as error:
        assert "Input should be 'Task not found'" in str(error), repr(error)
    else:
        gone("fasta2a reads the error of a task that is not there")


async def fasta2a_reads_no_results(service):
    answer = await fasta2a_client(service).send_message(fasta2a_message())
    if answer["result"]:
        gone(f"fasta2a reads the result of message/send: {answer}")


async def fasta2a_reads_no_card(service):
    from fasta2a.client import A2AClient

    try:
        A2AClient(service.agent("listed"), service.http(), fetch_card=True)
    except ValueError as error:
        assert "securityRequirements.0.schemes.bearer" in str(error), repr(error)
    else:
        gone("fasta2a reads a card that requires credentials")


# --- Tools that judge agents ---------------------------------------------------------------------


async def command(words, **environment):
    """What a command beside this interpreter prints, and its exit code."""
    program = Path(sys.prefix) / "bin" / words[0]
    run = await asyncio.create_subprocess_exec(
        program, *words[1:], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    printed, _ = await asyncio.wait_for(run.communicate(), DEADLINE * 2)
    return run.returncode, printed.decode()


async def a2a_lint(service):
    code, printed = await command(["a2a-lint", "--live", "--strict", service.agent("open")])
    assert code == 0 and "GRADE A " in printed, printed
    code, printed = await command(["a2a-lint", "--strict", service.agent("talk")])
    assert code == 0 and "GRADE A " in printed, printed


CONTRACT = """
version: 1
agent:
  url: {url}
  timeout: 20.0
  headers:
    Authorization: ${{BEARER}}
scenarios:
- name: repeats
  message: hello
"""


async def a2a_proof(service):
    folder = Path(sys.prefix) / "proof"
    folder.mkdir(exist_ok=True)
    contract = folder / f"{uuid.uuid4()}.yaml"
    contract.write_text(CONTRACT.format(url=service.agent("listed")))
    bearer = {"BEARER": service.headers["Authorization"]}
    for transport in ["JSONRPC", "HTTP+JSON"]:
        words = ["a2a-proof", "run", "--transport", transport, str(contract)]
        code, printed = await command(words, **bearer)
        assert code == 0 and "1 scenario passed" in printed, printed


async def a2a_proof_refuses_host_and_port(service):
    words = ["a2a-proof", "init", "--force", "-o", str(Path(sys.prefix) / "init.yaml")]
    code, printed = await command([*words, service.agent("talk")])
    if code == 0 or "unsupported URL" not in printed:
        gone(f"a2a-proof takes a card with host:port: {printed}")


SCENARIOS = {
    "0.3": [strands, fasta2a_of_0_3, fasta2a_reads_no_other_words],
    "1.0": [
        adk_with_card_bindings,
        adk_refuses_host_and_port,
        agent_framework,
        fasta2a_reads_no_results,
        fasta2a_reads_no_card,
        a2a_lint,
        a2a_proof,
        a2a_proof_refuses_host_and_port,
    ],
}


async def main(which, base, token):
    report = await play_all(SCENARIOS[which], which, Service(base, token))
    print(json.dumps(report, indent=1, ensure_ascii=False))


asyncio.run(main(*sys.argv[1:]))
