// Serves a program through the SDK of A2A for JavaScript: it is given a text, and what it says is the artifact.
//
//     server.mjs PROGRAM
//
// Prints its address and what it is made of in one line, and serves until it is ended.

import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";

import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } from "@a2a-js/sdk/server";
import { agentCardHandler, jsonRpcHandler, UserBuilder } from "@a2a-js/sdk/server/express";
import { TaskState } from "@a2a-js/sdk";
import express from "express";

const [path] = process.argv.slice(2);

// The programs that run now, by their task.
const children = new Map();

// What the program says once it has read the text, and the code it ends with.
const run = (taskId, text) =>
  new Promise((resolve, reject) => {
    const child = spawn(path, [], { stdio: ["pipe", "pipe", "pipe"] });
    const said = [];
    children.set(taskId, child);
    child.stdout.on("data", (piece) => said.push(piece));
    child.stderr.resume();
    child.on("error", reject);
    child.on("close", (code) => {
      children.delete(taskId);
      resolve([code, Buffer.concat(said).toString()]);
    });
    child.stdin.end(text);
  });

const part = (value) => ({ content: { $case: "text", value }, metadata: undefined, filename: "", mediaType: "" });

const status = (state) => ({ state, message: undefined, timestamp: new Date().toISOString() });

const program = {
  async execute({ userMessage, taskId, contextId }, events) {
    const ids = { taskId, contextId, metadata: undefined };
    const working = status(TaskState.TASK_STATE_WORKING);
    const task = { id: taskId, contextId, status: working, artifacts: [], history: [userMessage], metadata: undefined };
    events.publish(AgentEvent.task(task));
    const [code, said] = await run(taskId, userMessage.parts.map(({ content }) => content.value).join("\n"));
    if (code === 0) {
      const artifact = { artifactId: randomUUID(), name: "", description: "", parts: [part(said)], extensions: [] };
      events.publish(AgentEvent.artifactUpdate({ ...ids, artifact, append: false, lastChunk: true }));
    }
    const end = code === 0 ? TaskState.TASK_STATE_COMPLETED : TaskState.TASK_STATE_FAILED;
    events.publish(AgentEvent.statusUpdate({ ...ids, status: status(end) }));
    events.finished();
  },
  async cancelTask(taskId, events) {
    children.get(taskId)?.kill();
    const ids = { taskId, contextId: "", metadata: undefined };
    events.publish(AgentEvent.statusUpdate({ ...ids, status: status(TaskState.TASK_STATE_CANCELED) }));
    events.finished();
  },
};

const none = { examples: [], inputModes: [], outputModes: [], securityRequirements: [] };

const card = (address) => ({
  name: "program",
  description: "Says what a program says.",
  version: "1",
  supportedInterfaces: [{ url: `http://${address}/`, protocolBinding: "JSONRPC", protocolVersion: "1.0", tenant: "" }],
  provider: undefined,
  capabilities: { extensions: [] },
  securitySchemes: {},
  securityRequirements: [],
  defaultInputModes: ["text/plain"],
  defaultOutputModes: ["text/plain"],
  skills: [{ id: "say", name: "Say", description: "Says what a program says.", ...none, tags: ["text"] }],
  signatures: [],
});

const version = (name) => {
  const file = new URL(`node_modules/${name}/package.json`, import.meta.url);
  return `${name} ${JSON.parse(readFileSync(file)).version}`;
};

const app = express();
const server = createServer(app);
server.listen(0, "127.0.0.1", () => {
  const address = `127.0.0.1:${server.address().port}`;
  const requestHandler = new DefaultRequestHandler(card(address), new InMemoryTaskStore(), program);
  app.use("/.well-known/agent-card.json", agentCardHandler({ agentCardProvider: requestHandler }));
  app.use("/", jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }));
  console.log(`${address} ${version("@a2a-js/sdk")}, ${version("express")}, Node ${process.versions.node}`);
});
