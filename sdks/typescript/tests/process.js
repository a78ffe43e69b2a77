// An extension as a process of its own, and the host's side of its pipes.

import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, constants, createWriteStream, mkdtempSync, openSync, rmSync } from "node:fs";
import { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { Lines } from "../src/transport.js";

const PATIENCE = 10_000;
const HERE = import.meta.dirname;

/** A pipe as hosts have it; Node itself would give a child sockets. */
function pipe() {
  const place = mkdtempSync(join(tmpdir(), "hilt-pipe-"));
  const path = join(place, "pipe");
  execFileSync("mkfifo", [path]);
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const writer = openSync(path, constants.O_WRONLY);
  closeSync(reader);
  const blocking = openSync(path, constants.O_RDONLY);
  rmSync(place, { recursive: true });
  return { reader: blocking, writer };
}

export class Process {
  /** @param {{ command?: string[], file?: string, descriptors?: boolean, env?: Record<string, string> }} options */
  constructor({ command = [process.execPath], file = "extensions/sample.mjs", descriptors = false, env = {} } = {}) {
    const [program, ...args] = command;
    const [input, output] = [pipe(), pipe()];
    const stdio = descriptors
      ? ["ignore", "ignore", "pipe", input.reader, output.writer]
      : [input.reader, output.writer, "pipe"];
    const environment = { ...process.env, ...(descriptors ? { PIGLET_FD: "1" } : {}), ...env };
    delete environment.NODE_TEST_CONTEXT;
    this.child = spawn(program, [...args, join(HERE, file)], { stdio, env: environment });
    closeSync(input.reader);
    closeSync(output.writer);
    this.input = createWriteStream("", { fd: input.writer });
    this.output = new Socket({ fd: output.reader, readable: true, writable: false });
    this.heard = [];
    this.log = "";
    after(() => this.child.kill("SIGKILL"));
    this.exited = once(this.child, "exit");
    this.child.stderr.on("data", (chunk) => (this.log += chunk));
    const lines = new Lines(
      (line) => this.hear(line),
      () => this.hear("too long"),
    );
    this.output.on("data", (chunk) => lines.feed(chunk));
    this.input.on("error", () => undefined);
  }

  hear(line) {
    this.heard.push(JSON.parse(line));
    this.woken?.();
  }

  send(message) {
    this.input.write(`${typeof message === "string" ? message : JSON.stringify(message)}\n`);
  }

  /** The next message that fits; those before it are passed over. */
  async next(fits) {
    const limit = Date.now() + PATIENCE;
    for (;;) {
      const at = this.heard.findIndex(fits);
      if (at >= 0) return this.heard.splice(0, at + 1).at(-1);
      if (Date.now() > limit)
        throw new Error(`waited in vain; it said ${JSON.stringify(this.heard)} and logged ${this.log}`);
      await new Promise((resolve) => {
        const timer = setTimeout(resolve, limit - Date.now() + 1);
        this.woken = () => (clearTimeout(timer), resolve());
      });
    }
  }

  async ask(id, message) {
    this.send({ id, ...message });
    return this.next((one) => one.id === id);
  }

  /** The exit code and the signal; one that does not exit is killed and fails. */
  async end() {
    const timer = setTimeout(() => this.child.kill("SIGKILL"), PATIENCE);
    const [code, signal] = await this.exited;
    clearTimeout(timer);
    return signal ?? code;
  }
}

export const ACK = {
  type: "hello_ack",
  protocol_version: 1,
  zot_version: "0.1.62",
  host: "hilt",
  host_version: "0.1.0",
  capabilities: ["call_tool", "host_request", "host_notify", "ext_request", "register", "tool_progress", "tool_cancel"],
  cwd: "/",
};
