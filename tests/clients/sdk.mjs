// Drives each binding through the official SDK for JavaScript, 0.3 or 1.x, as its users do.
//
//     sdk.mjs VERSION FOLDER BASE TOKEN
//
// VERSION is 0.3 or 1.0, FOLDER holds node_modules. Needs the configuration of own.toml. Prints one
// JSON object: for each scenario "ok" or what went wrong.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { createRequire } from "node:module";

const [version, folder, base, token] = process.argv.slice(2);
const load = createRequire(`${folder}/`); // This script is not beside what it loads.
const sdk = load("@a2a-js/sdk/client");
const { GrpcTransportFactory } = load("@a2a-js/sdk/client/grpc");
const isNew = version === "1.0";
const DEADLINE = 20_000;

// --- What the two versions of the SDK say differently ------------------------------------------

const STATES = {
  submitted: 1, working: 2, completed: 3, failed: 4, canceled: 5, "input-required": 6, "auth-required": 8,
};

const state = (name) => (isNew ? STATES[name] : name);

const request = (text, more = {}) => {
  const message = { messageId: randomUUID(), ...more };
  if (!isNew) {
    return { message: { kind: "message", role: "user", parts: [{ kind: "text", text }], ...message } };
  }
  const part = { content: { $case: "text", value: text }, filename: "", mediaType: "" };
  const empty = { contextId: "", taskId: "", extensions: [], referenceTaskIds: [] };
  const said = { ...empty, role: 1, parts: [part], ...message };
  return { tenant: "", message: said, configuration: undefined, metadata: undefined };
};

const texts = (parts) => parts.map((part) => (isNew ? part.content.value : part.text)).join("");

// An answer or an event as [kind, what]: of the kinds of 0.3.
const opened = (answer) => {
  if (!isNew) return [answer.kind, answer];
  if (answer.payload === undefined) return ["task", answer];
  const { $case, value } = answer.payload;
  const kinds = { statusUpdate: "status-update", artifactUpdate: "artifact-update" };
  return [kinds[$case] ?? $case, value];
};

const named = (id) => (isNew ? { tenant: "", id } : { id });

const output = (task) => {
  assert.equal(task.status.state, state("completed"));
  return texts(task.artifacts.flatMap((artifact) => artifact.parts));
};

// --- Clients -----------------------------------------------------------------------------------

const bearer = (token) => async (url, init = {}) => {
  const headers = new Headers(init.headers);
  if (token) headers.set("Authorization", `Bearer ${token}`);
  return fetch(url, { ...init, headers, signal: AbortSignal.timeout(DEADLINE) });
};

const grpcMetadata = (agent, token) => ({
  before: async (call) => {
    const parameters = { ...call.options?.serviceParameters, "a2a-agent": agent };
    if (token) parameters.authorization = `Bearer ${token}`;
    call.options = { ...call.options, serviceParameters: parameters };
  },
  after: async () => {},
});

const client = async (binding, agent, { token: shown = token, polling = false, older = false } = {}) => {
  const fetchImpl = bearer(shown);
  const { JsonRpcTransportFactory, RestTransportFactory } = sdk;
  const legacyCompat = { enabled: older };
  const transports = [
    new JsonRpcTransportFactory({ fetchImpl, legacyCompat }),
    new RestTransportFactory({ fetchImpl, legacyCompat }),
    new GrpcTransportFactory(isNew ? { legacyCompat } : {}),
  ];
  const resolver = new sdk.DefaultAgentCardResolver();
  const card = await resolver.resolve(`${base}/agents/${agent}/`);
  if (!isNew && binding === "GRPC") {
    // Not in the card: without a host name of its own only metadata names the agent.
    card.additionalInterfaces.push({ transport: "GRPC", url: base.replace("http://", "") });
  }
  if (older) {
    card.supportedInterfaces = card.supportedInterfaces.filter((way) => way.protocolVersion === "0.3");
  }
  const interceptors = binding === "GRPC" ? [grpcMetadata(agent, shown)] : [];
  const clientConfig = { polling, interceptors };
  const options = { transports, preferredTransports: [binding], clientConfig };
  const made = await new sdk.ClientFactory(options).createFromAgentCard(card);
  return made;
};

const sent = async (client, what) => {
  const [kind, task] = opened(await client.sendMessage(what));
  assert.equal(kind, "task");
  return task;
};

const collected = async (events) => {
  const all = [];
  for await (const event of events) all.push(opened(event));
  return all;
};

const running = async (binding) => {
  const asker = await client(binding, "sleep", { polling: true });
  const task = await sent(asker, request("300"));
  for (let tries = 0; tries < 400; tries += 1) {
    const found = await asker.getTask(named(task.id));
    if (found.status.state === state("working")) return [asker, task];
    await new Promise((resolve) => setTimeout(resolve, 50)); // There is no other way to wait.
  }
  throw new Error("it does not begin");
};

// --- Scenarios ---------------------------------------------------------------------------------

const scenarios = {
  async send(binding) {
    const task = await sent(await client(binding, "talk"), request("Grüße"));
    assert.equal(output(task), "you said: Grüße");
  },

  async stream(binding) {
    const talker = await client(binding, "talk");
    const events = await collected(talker.sendMessageStream(request("streamed")));
    const kinds = events.map(([kind]) => kind);
    assert.equal(kinds[0], "task");
    assert.equal(kinds.filter((kind) => kind === "task").length, 1);
    const [last, ended] = events.at(-1);
    assert.deepEqual([last, ended.status.state], ["status-update", state("completed")]);
    if (!isNew) assert.equal(ended.final, true);
    const made = events.filter(([kind]) => kind === "artifact-update");
    const parts = made.flatMap(([, update]) => update.artifact.parts);
    assert.equal(texts(parts), "you said: streamed");
  },

  async get(binding) {
    const talker = await client(binding, "talk");
    const task = await sent(talker, request("kept", { contextId: "javascript" }));
    const found = await talker.getTask({ ...named(task.id), historyLength: 5 });
    assert.equal(output(found), "you said: kept");
    assert.equal(found.contextId, "javascript");
    assert.equal(texts(found.history[0].parts), "kept");
    await assert.rejects(talker.getTask(named(randomUUID())), { name: "TaskNotFoundError" });
  },

  async cancel(binding) {
    const [asker, task] = await running(binding);
    assert.equal((await asker.cancelTask(named(task.id))).status.state, state("canceled"));
    await assert.rejects(asker.cancelTask(named(task.id)), { name: "TaskNotCancelableError" });
  },

  async resubscribe(binding) {
    const [asker, task] = await running(binding);
    const states = [];
    for await (const event of asker.resubscribeTask(named(task.id))) {
      const [, told] = opened(event);
      if (told.status) states.push(told.status.state);
      if (states.length === 1) await asker.cancelTask(named(task.id));
    }
    assert.equal(states[0], state("working"));
    assert.equal(states.at(-1), state("canceled"));
  },

  async inputRequired(binding) {
    const asker = await client(binding, "ask");
    const task = await sent(asker, request("go"));
    assert.equal(task.status.state, state("input-required"));
    assert.equal(texts(task.status.message.parts), "which way?");
    const more = { taskId: task.id, contextId: task.contextId };
    const done = await sent(asker, request("left", more));
    assert.deepEqual([done.id, output(done)], [task.id, "going left"]);
  },

  async authRequired(binding) {
    const asker = await client(binding, "guard");
    const task = await sent(asker, request("go"));
    assert.equal(task.status.state, state("auth-required"));
    const [text, page] = task.status.message.parts;
    assert.equal(texts([text]), "Sign in.");
    assert.equal(isNew ? page.content.value : page.file.uri, "https://login.example.org/device");
    const more = { taskId: task.id, contextId: task.contextId };
    const done = await sent(asker, request("done", more));
    assert.deepEqual([done.id, output(done)], [task.id, "signed in: done"]);
  },

  async refusedTokens(binding) {
    for (const shown of ["0".repeat(64), ""]) {
      const stranger = await client(binding, "talk", { token: shown });
      await assert.rejects(stranger.sendMessage(request("hello")), /401|credentials are required/);
    }
  },
};

if (isNew) {
  scenarios.list = async (binding) => {
    const talker = await client(binding, "talk");
    const contextId = randomUUID();
    const first = await sent(talker, request("one", { contextId }));
    const second = await sent(talker, request("two", { contextId }));
    const wanted = { tenant: "", contextId, status: 0, pageToken: "", statusTimestampAfter: undefined };
    const page = await talker.listTasks(wanted);
    assert.deepEqual(page.tasks.map((task) => task.id), [second.id, first.id]);
  };
}

if (isNew) {
  // 0.3, as the SDK of 1.x speaks it: it is chosen from the list of the card.
  scenarios.compatible = async (binding) => {
    const talker = await client(binding, "talk", { older: true });
    assert.equal(output(await sent(talker, request("older"))), "you said: older");
    await assert.rejects(talker.getTask(named(randomUUID())), { name: "TaskNotFoundError" });
  };
}

const limit = () =>
  new Promise((_, reject) => setTimeout(() => reject(new Error("too slow")), 2 * DEADLINE).unref());

const report = {};
for (const binding of ["JSONRPC", "HTTP+JSON", "GRPC"]) {
  for (const [name, scenario] of Object.entries(scenarios)) {
    const verdict = Promise.race([scenario(binding), limit()]).then(
      () => "ok",
      (error) => String(error.stack),
    );
    report[`${binding} ${name}`] = await verdict;
  }
}
console.log(JSON.stringify(report, undefined, 1));
process.exit(0);
