// The SDK as a real process: its pipes, what user code prints, its end; in every runtime that is there.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { ACK, Process } from "./process.js";

const call = (name, args = {}) => ({ type: "tool_call", name, args });
const textOf = (answer) => answer.content[0].text;

function isThere(program) {
  try {
    execFileSync(program, ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

const RUNTIMES = { node: [process.execPath], bun: ["bun", "run"], deno: ["deno", "run", "--allow-all"] };

for (const [name, command] of Object.entries(RUNTIMES)) {
  const skip = name === "node" || isThere(command[0]) ? false : `${name} is not there`;
  test(`a tool answers in both dialects and on all pipes under ${name}`, { skip }, async () => {
    const frames = new Process({ command });
    frames.send(ACK);
    await frames.next(({ type }) => type === "ready");
    assert.equal(textOf(await frames.ask("a", call("echo", { text: "é\u2028", times: 2 }))), "é\u2028é\u2028");
    assert.equal(textOf(await frames.ask("b", call("stdin"))), "0");
    assert.equal(textOf(await frames.ask("c", call("stray"))), "still here");
    frames.send({ type: "shutdown" });
    assert.equal(await frames.end(), 0);
    for (const printed of ["printed by a handler", "as a table", "written by a handler", "goodbye"])
      assert.match(frames.log, new RegExp(printed));

    for (const options of [{ descriptors: true }, { env: { HILT_SDK_DIALECT: "jsonrpc" } }]) {
      const rpc = new Process({ command, ...options });
      rpc.send({ jsonrpc: "2.0", id: 1, method: "initialize", params: { protocolVersion: "5", cwd: "/" } });
      assert.deepEqual((await rpc.next(({ id }) => id === 1)).result, { name: "sample", version: "1.0.0" });
      const { result } = await rpc.ask(2, {
        method: "tool/execute",
        params: { callId: "c", name: "echo", args: { text: "x" } },
      });
      assert.deepEqual(result, { content: [{ type: "text", text: "x" }] });
      rpc.input.end();
      assert.equal(await rpc.end(), 0);
    }
  });
}

test("questions are answered side by side, whatever else goes wrong in the process", async () => {
  const ext = new Process();
  ext.send(ACK);
  ext.send("no JSON");
  ext.send("[1]");
  ext.send({ type: "sparkle" });
  ext.send(`{"type":"tool_call","id":"long","name":"echo","args":{"text":"${"x".repeat(4 * 1024 * 1024)}"}}`);
  ext.send({ id: "s", ...call("slow") });
  assert.equal(textOf(await ext.ask("a", call("stray"))), "still here");
  assert.equal(textOf(await ext.ask("b", call("nobody"))), "unknown tool: nobody");
  assert.deepEqual(await ext.ask("c", { type: "command_invoked", name: "nobody" }), {
    type: "command_response",
    id: "c",
    error: "unknown command: nobody",
  });
  assert.equal((await ext.ask("d", { type: "ext_request", method: "no/thing", params: {} })).error.code, -32601);
  assert.match(textOf(await ext.ask("e", call("echo", { text: 7 }))), /^text must be a string, not 7$/);
  assert.equal(textOf(await ext.ask("f", call("fail"))), "[error:NO_CITY] no such city\nhint: try Rome");
  ext.send({ type: "tool_cancel", id: "s" });
  assert.equal((await ext.next(({ type }) => type === "notify")).message, "told");
  assert.equal(textOf(await ext.next(({ id }) => id === "s")), "stopped");
  ext.input.end();
  assert.equal(await ext.end(), 0);
  for (const said of ["is no JSON, and was left out", "nobody waits for this", "nor for this", "is too long, and was left out"])
    assert.match(ext.log, new RegExp(said));
});

test("results that need the whole pipe are neither lost nor mixed when the host reads late", async () => {
  const ext = new Process();
  ext.output.pause();
  ext.send(ACK);
  const text = "y".repeat(300_000);
  for (let at = 0; at < 8; at += 1) ext.send({ id: `r${at}`, ...call("echo", { text: `${at}${text}` }) });
  ext.send({ id: "big", ...call("echo", { text, times: 20 }) });
  ext.send({ type: "shutdown" });
  setTimeout(() => ext.output.resume(), 100);
  for (let at = 0; at < 8; at += 1) assert.equal(textOf(await ext.next(({ id }) => id === `r${at}`)), `${at}${text}`);
  assert.match(textOf(await ext.next(({ id }) => id === "big")), /^60000\d\d bytes are too many .* write a file/);
  assert.equal(await ext.end(), 0);
});

test("it ends within a moment on shutdown, at the end of its input and on SIGTERM, and not on SIGINT", async () => {
  const ending = [
    (ext) => ext.send({ type: "shutdown" }),
    (ext) => ext.input.end(),
    (ext) => ext.child.kill("SIGTERM"),
  ];
  await Promise.all(
    ending.map(async (end) => {
      const ext = new Process();
      ext.send(ACK);
      await ext.next(({ type }) => type === "ready");
      ext.child.kill("SIGINT");
      ext.send({ id: "s", ...call("stuck") });
      ext.send({ id: "w", ...call("slow") });
      assert.equal((await ext.next(({ type }) => type === "tool_progress")).text, "begun");
      const begun = Date.now();
      end(ext);
      assert.equal(await ext.end(), 0);
      assert.ok(Date.now() - begun < 4000);
      assert.match(ext.log, /goodbye/);
    }),
  );
});

test("an extension runs where it is the program, through a link as well, and not where it is imported", () => {
  const file = join(import.meta.dirname, "extensions", "main.mjs");
  const place = mkdtempSync(join(tmpdir(), "hilt-main-"));
  const link = join(place, "linked.mjs");
  symlinkSync(file, link);
  const ran = (...args) => execFileSync(process.execPath, args, { input: "", encoding: "utf8", timeout: 10_000 });
  for (const path of [file, link]) assert.equal(JSON.parse(ran(path).split("\n")[0]).type, "hello");
  const imports = `const { ext } = await import(${JSON.stringify(pathToFileURL(file).href)}); console.log(ext.name)`;
  assert.equal(ran("--input-type=module", "-e", imports), "main\n");
  rmSync(place, { recursive: true });
});
