// What an extension says and does in either dialect, against the host in memory; and what hosts lack.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import {
  Block,
  Extension,
  FEATURES,
  Handled,
  Image,
  Insert,
  Panel,
  Prompt,
  RegistrationError,
  Replace,
  Result,
  Rewrite,
  s,
  ToolError,
  ToolPrompt,
} from "../src/index.js";
import { testHost } from "../src/testing.js";

const DIALECTS = ["frames", "jsonrpc"];
const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==",
  "base64",
);

/** An extension with one tool that runs `run`, against a host. */
async function withTool(run, options, parameters) {
  const ext = new Extension("demo");
  ext.tool({ name: "try", run, ...(parameters ? { parameters } : {}) });
  return testHost(ext, options);
}

for (const dialect of DIALECTS) {
  test(`what a tool returns becomes its result (${dialect})`, async () => {
    let answer;
    const host = await withTool(() => answer, { dialect });
    const results = async (value) => {
      answer = value;
      return host.call("try");
    };
    assert.equal((await results("text")).text, "text");
    assert.equal((await results(undefined)).text, "ok");
    assert.equal((await results(7)).text, "7");
    const structured = await results({ sum: 3 });
    assert.deepEqual(
      [structured.text, structured.structured],
      ['{"sum":3}', dialect === "frames" ? { sum: 3 } : undefined],
    );
    assert.deepEqual((await results(["look", new Result({ content: [new Image(PNG)] })])).content, [
      { type: "text", text: "look" },
      { type: "image", mime: "image/png", data: PNG.toString("base64") },
    ]);
    assert.equal((await results(new Result({ text: "no", isError: true }))).isError, true);
    for (const [value, member] of [
      [{ a: [1, NaN] }, "a\\[1\\]"],
      [{ a: 1n }, "BigInt|a"],
      [{ text: "half \ud800" }, "text"],
      [new Map(), "Map"],
    ]) {
      const failed = await results(value);
      assert.equal(failed.isError, true);
      assert.match(failed.text, new RegExp(member));
    }
    const long = await results("x".repeat(5_000_000));
    assert.equal(long.isError, true);
    assert.match(long.text, /bytes are too many .* write a file/);
    await host.close();
  });

  test(`what a tool throws is its error, and the trace is in the log (${dialect})`, async () => {
    const errors = [
      new ToolError("no such city", { code: "NO_CITY", hint: "try Rome" }),
      new TypeError("odd\nthing"),
      "words",
    ];
    const host = await withTool(
      () => {
        throw errors.shift();
      },
      { dialect },
    );
    const told = await host.call("try");
    assert.equal(told.isError, true);
    assert.equal(told.text, dialect === "frames" ? "[error:NO_CITY] no such city\nhint: try Rome" : "no such city");
    assert.deepEqual([told.code, told.hint], dialect === "frames" ? ["", ""] : ["NO_CITY", "try Rome"]);
    assert.deepEqual(host.log, []);
    assert.equal((await host.call("try")).text, "TypeError: odd thing");
    assert.match(host.log.join("\n"), /the tool try failed: TypeError: odd[\s\S]+at /);
    assert.equal((await host.call("try")).text, "Error: words");
    assert.equal((await host.call("nobody")).text, "unknown tool: nobody");
    await host.close();
  });

  test(`commands and shortcuts show, insert, prompt and open panels (${dialect})`, async () => {
    class Counter extends Panel {
      count = 0;
      render(width) {
        return `${this.count} of ${width}`;
      }
      async onKey(key, text) {
        if (key === "down") await new Promise((resolve) => setTimeout(resolve, 5));
        this.count = key === "down" ? this.count + 1 : text === "x" ? this.count * 11 : this.count;
      }
      onClose() {
        ext.notify("closed");
      }
    }
    const ext = new Extension("demo");
    ext.command("hi", "say hello", (name) => `hello ${name}`);
    ext.command("/insert", "", () => new Insert("git status"));
    ext.command("prompt", "", () => new Prompt("go on"));
    ext.command("tool", "", () => new ToolPrompt("read", { path: "a" }, "what is it?"));
    ext.command("odd", "", () => 7);
    ext.command("fail", "", () => {
      throw new ToolError("bad args");
    });
    ext.command("count", "", () => new Counter({ title: "Count" }));
    ext.shortcut("ctrl+g", "go", () => "going");
    const host = await testHost(ext, { dialect, answers: { "host/executeTool": new Result("seven") } });
    assert.equal((await host.run("/hi Ada  L")).shown, "hello Ada  L");
    assert.equal((await host.run("/insert")).inserted, "git status");
    assert.equal((await host.run("/prompt")).prompt, "go on");
    const prompted = await host.run("/tool");
    if (dialect === "frames")
      assert.deepEqual([prompted.tool, prompted.args, prompted.prompt], ["read", { path: "a" }, "what is it?"]);
    else assert.equal(prompted.prompt, "what is it?\n\nread returned:\nseven");
    assert.match((await host.run("/odd")).error, /returned number 7, which means nothing here/);
    assert.equal((await host.run("/fail")).error, "bad args");
    assert.equal((await host.run("/nobody")).error, "unknown command: nobody");
    assert.equal((await host.press("ctrl+g")).shown, "going");

    const { panel } = await host.run("/count");
    assert.deepEqual([panel.title, panel.lines], ["Count", ["0 of 80"]]);
    await Promise.all([host.key(panel, "down"), host.key(panel, "x"), host.resize(panel, 40, 5)]);
    assert.deepEqual(host.panels.get(panel.id).lines, ["11 of 40"]);
    const before = host.said.length;
    await host.key(panel, "up");
    assert.equal(host.said.length, before, "what has not changed is not drawn");
    await host.closePanel(panel);
    assert.equal(host.notes.at(-1).text, "closed");
    await host.close();
  });

  test(`interceptors decide in order, and one that fails refuses (${dialect})`, async () => {
    const ext = new Extension("demo");
    ext.intercept("tool_call", ({ args }) => (args.command?.includes("rm") ? new Block("no rm") : undefined));
    ext.intercept("tool_call", ({ args }) => new Rewrite({ ...args, seen: [...(args.seen ?? []), 1] }));
    ext.intercept("tool_call", ({ args, tool }) => {
      if (tool === "broken") throw new TypeError("lost my list");
      if (tool === "odd") return true;
      return new Rewrite({ ...args, seen: [...args.seen, 2] });
    });
    ext.intercept("turn_start", ({ step }) => (step > 2 ? new Block() : undefined));
    ext.intercept("assistant_message", ({ text }) => new Replace(text.replace("SECRET", "***")));
    ext.intercept("before_agent_start", ({ systemPrompt }) => `${systemPrompt} Be brief.`);
    ext.intercept("tool_result", ({ text, tool }) => {
      if (tool === "broken") throw new Error("cannot cope");
      return `[${text}]`;
    });
    ext.intercept("tool_result", ({ text }) => new Result({ text: `<${text}>`, isError: true }));
    const host = await testHost(ext, { dialect });
    assert.deepEqual((await host.intercept("bash", { command: "ls" })).args, { command: "ls", seen: [1, 2] });
    assert.equal((await host.intercept("bash", { command: "rm -r" })).reason, "no rm");
    const failed = await host.intercept("broken");
    assert.deepEqual([failed.blocked, failed.reason], [true, "demo's guard failed: TypeError: lost my list"]);
    assert.match((await host.intercept("odd")).reason, /^demo's guard failed: .*returned boolean true/);
    assert.equal((await host.interceptTurn(2)).blocked, false);
    assert.deepEqual([(await host.interceptTurn(3)).blocked, (await host.interceptTurn(3)).reason], [true, ""]);
    assert.equal((await host.interceptMessage("a SECRET")).text, "a ***");
    assert.equal((await host.interceptPrompt("Help.")).systemPrompt, "Help. Be brief.");
    const { text, result } = await host.interceptResult("bash", "out");
    assert.deepEqual([text, result.isError], ["<[out]>", true]);
    assert.equal((await host.interceptResult("broken", "out")).text, "<out>");
    await host.close();
  });

  test(`hooks, transformers, compactors and providers answer (${dialect})`, async () => {
    const ext = new Extension("demo");
    ext.messageHook(() => "second", { priority: 5, name: "late" }).messageHook((text) => `first: ${text}`);
    ext.inputTransformer((text) => (text === "stop" ? new Handled() : text.replace("@me", "Ada")));
    ext.compactor((messages) => messages.slice(-1), { threshold: 1000 });
    ext.provider(
      "parrot",
      async (request, reply) => {
        reply.thinking("hm");
        await reply.text(`${request.system} `);
        await reply.text(request.messages[0].content);
        if (request.tools.length) reply.toolCall(request.tools[0].name, { a: 1 }, "c1");
        reply.usage(5, 2);
        if (request.messages[0].content === "fail") throw new ToolError("overloaded");
      },
      { models: [{ id: "p1", contextWindow: 1000 }] },
    );
    const host = await testHost(ext, { dialect });
    assert.equal(await host.hook("hi"), "first: hi\nsecond");
    assert.deepEqual([await host.transform("hi @me"), await host.transform("stop")], ["hi Ada", null]);
    assert.deepEqual(await host.compact([1, 2, 3]), [3]);
    const { message, ...answer } = await host.stream("hello", { system: "S", tools: [{ name: "add" }] });
    assert.deepEqual(answer, { text: "S hello", thinking: "hm", calls: [{ name: "add", args: { a: 1 } }] });
    assert.deepEqual(message.content, [
      { type: "thinking", thinking: "hm" },
      { type: "text", text: "S hello" },
      { type: "tool_call", id: "c1", name: "add", arguments: { a: 1 } },
    ]);
    assert.deepEqual(
      [message.stopReason, message.model, message.provider, message.usage.inputTokens],
      ["toolUse", "p1", "parrot", 5],
    );
    const pieces = host.said
      .filter(({ method }) => method === "provider/delta")
      .map(({ params }) => [params.type, params.index]);
    assert.deepEqual(pieces, [
      ["thinking_delta", 0],
      ["text_delta", 1],
      ["text_delta", 1],
      ["toolcall_end", 2],
    ]);
    await assert.rejects(host.stream("fail"), /^HostError: overloaded$/);
    await host.close();
  });

  test(`it asks the host, in its own words and by any method (${dialect})`, async () => {
    const ext = new Extension("demo");
    ext.command("ask", "", async () => {
      const { text } = await ext.host.chat("2+2?", { maxTokens: 5 });
      const [picked, asked] = [await ext.host.pick("Which?", ["a", "b"]), await ext.host.ask("Sure?", ["Yes"])];
      return `${text} ${picked} ${asked} ${(await ext.settings("city")).city} ${await ext.host.sessionTitle()}`;
    });
    ext.command("fail", "", () => ext.host.request("host/nobodyHasThis"));
    ext.tool({ name: "peek", run: async (_, call) => (await call.callTool("read", { path: "a" })).text });
    const heard = [];
    ext.onReady(async () => {
      await ext.host.subscribe("tp", (data) => heard.push(data));
      await ext.host.publish("tp", { x: 1 });
    });
    const asked = {};
    const host = await testHost(ext, {
      dialect,
      answers: {
        "host/chat": (params) => ((asked.chat = params), { text: "4", usage: {} }),
        "host/showPicker": { selected: "b" },
        "host/askUser": { selected: "", cancelled: true },
        "host/config.get": { values: { city: "Rome" } },
        "host/sessionTitle": { title: "Sums" },
        "host/executeTool": (params) => ((asked.tool = params), new Result("seven")),
      },
    });
    assert.equal((await host.run("/ask")).shown, "4 b null Rome Sums");
    assert.deepEqual(asked.chat, { messages: [{ role: "user", content: "2+2?" }], maxTokens: 5 });
    assert.match((await host.run("/fail")).error, /no answer to host\/nobodyHasThis/);
    assert.equal((await host.call("peek")).text, "seven");
    assert.deepEqual([asked.tool.name, typeof asked.tool.callId], ["read", "string"]);
    assert.deepEqual(heard, [{ x: 1 }]);
    await host.close();
  });

  test(`a call that is cancelled is told, and so is everything at the end (${dialect})`, async () => {
    const told = [];
    const ext = new Extension("demo");
    ext.tool({
      name: "slow",
      async run(_, call) {
        call.progress("begun");
        call.onCancel(() => told.push("cancelled"));
        return `${await call.wait(60)} ${call.cancelled}`;
      },
    });
    ext.onStop(() => told.push("stopped"));
    const host = await testHost(ext, { dialect });
    const control = new AbortController();
    const result = host.call("slow", {}, { signal: control.signal });
    control.abort();
    assert.equal((await result).text, "true true");
    assert.deepEqual((await result).progress, ["begun"]);
    const left = host.call("slow");
    left.catch(() => undefined);
    assert.equal(await host.close(), 0);
    assert.deepEqual(told, ["cancelled", "cancelled", "stopped"]);
  });
}

test("events come one after the other under one set of names, whichever dialect tells them", async () => {
  const heard = [];
  const make = () => {
    const ext = new Extension("demo");
    ext.on(
      ["turn_start", "assistant_message", "tool_call", "tool_result", "turn_end", "post_compact"],
      async (event) => {
        await new Promise((resolve) => setTimeout(resolve, event.name === "turn_start" ? 10 : 0));
        heard.push(`${event.name} ${event.step || event.text || event.toolName || event.stop || event.messageCount}`);
      },
    );
    ext.on("EventRetry", ({ name, data }) => heard.push(`${name} ${data.Attempt}`));
    ext.on("turn_end", () => {
      throw new Error("a handler that fails");
    });
    return ext;
  };
  const expected = [
    "turn_start 1",
    "assistant_message Hi",
    "tool_call add",
    "tool_result add",
    "turn_end tool_use",
    "post_compact 2",
    "EventRetry 3",
  ];

  const frames = await testHost(make());
  const told = [
    ["turn_start", { step: 1 }],
    ["assistant_message", { text: "Hi" }],
    ["tool_call", { toolName: "add" }],
    ["tool_result", { toolName: "add", result: { content: [], is_error: false } }],
    ["turn_end", { stop: "tool_use" }],
    ["post_compact", { messageCount: 2 }],
  ];
  await Promise.all(told.map(([name, members]) => frames.emit(name, members)));
  await frames.emit("EventRetry", { Attempt: 3 });
  assert.deepEqual(heard.splice(0), expected);
  assert.match(frames.log.join(), /a handler of turn_end failed: Error: a handler that fails/);
  await frames.close();

  const rpc = await testHost(make(), { dialect: "jsonrpc" });
  for (const [type, data] of [
    ["EventAgentStart", {}],
    ["EventTurnStart", {}],
    ["EventStreamDone", { Message: { content: [{ text: "Hi" }] } }],
    ["EventToolStart", { ToolName: "add", Args: null }],
    ["EventToolEnd", { ToolName: "add", Result: null, IsError: false }],
  ])
    await rpc.emit(type, data);
  await assert.rejects(rpc.emit("EventTurnEnd", { Assistant: { stopReason: "toolUse" } }), /a handler that fails/);
  await rpc.emit("EventCompact", { After: 2 });
  await rpc.emit("EventRetry", { Attempt: 3 });
  assert.deepEqual(heard, expected);
  await rpc.close();
});

/** An extension that uses a little of everything. */
function demanding() {
  const ext = new Extension("weather");
  ext.shortcut("ctrl+g", "", () => undefined);
  ext.promptSection("Rules", "be good");
  ext.on("session_end", () => undefined);
  ext.intercept("turn_start", () => undefined);
  ext.intercept("tool_call", () => new Block("no"), { priority: 20 });
  ext.uses("progress", "widgets");
  ext.command("try", "", () => {
    ext.widget("w", "x");
    ext.widget("w", "y");
    ext.clearNotes();
    ext.show("seen");
    ext.steer("go");
  });
  return ext;
}

test("what zot and piglet do not offer is said at once, and falls back or fails in words", async () => {
  const zot = await testHost(demanding(), { host: "zot" });
  const lacks =
    "events beyond the first five (session_end), priorities of interceptors, progress of tools, " +
    "prompt sections (Rules), shortcuts (ctrl+g), widgets";
  assert.deepEqual(zot.notes, [{ level: "warn", text: `weather: zot 0.1.62 does not offer: ${lacks}` }]);
  assert.deepEqual(zot.missing.join(", "), lacks);
  assert.deepEqual(zot.log.slice(4, 5), ["weather: zot 0.1.62 does not offer shortcuts (ctrl+g)"]);
  assert.equal(
    zot.said.some(({ type }) => type === "register"),
    false,
  );
  assert.equal((await zot.intercept("bash")).blocked, true, "a guard with a priority guards there too");
  assert.equal((await zot.run("/try")).error, "zot 0.1.62 does not offer steering");
  assert.equal(zot.notes.at(-1).text, "seen");
  assert.equal(zot.log.filter((line) => line.includes("zot 0.1.62 does not offer widgets: left out")).length, 1);
  await zot.close();

  const piglet = await testHost(demanding(), { host: "piglet" });
  assert.deepEqual(piglet.missing, ["events (session_end)", "interception of turns", "progress of tools"]);
  assert.deepEqual(piglet.registered.interceptor, [{ name: "weather-20", priority: 20 }]);
  assert.equal((await piglet.run("/try")).error, "");
  assert.equal(piglet.extension.offers("steer"), true);
  assert.throws(
    () => piglet.extension.tool({ name: "late", run: () => "" }),
    /piglet does not offer registration after the start/,
  );
  await piglet.close();

  const needing = new Extension("guard").require("intercept.turn_start");
  await assert.rejects(
    testHost(needing, { host: "piglet" }),
    /guard: piglet does not offer what it needs: interception of turns/,
  );
  assert.equal(
    await (await testHost(new Extension("guard").require("intercept.turn_start"), { host: "zot" })).close(),
    0,
  );
});

test("what is registered late is told at once, and what cannot be registered says why", async () => {
  const ext = new Extension("demo");
  const host = await testHost(ext);
  ext
    .tool({ name: "late", run: () => "here" })
    .command("late", "", () => "here")
    .on("turn_end", () => undefined);
  ext
    .intercept("tool_call", () => new Block("no"))
    .promptSection("Late", "x")
    .shortcut("ctrl+l", "", () => undefined);
  assert.equal((await host.call("late")).text, "here");
  assert.deepEqual(
    host.said
      .slice(2)
      .map(({ type, kind }) => kind ?? type)
      .filter((type) => !type.endsWith("result")),
    ["register_tool", "register_command", "subscribe", "subscribe", "prompt_section", "shortcut"],
  );
  await host.close();
  for (const [register, words] of [
    [() => ext.tool({ name: "no spaces", run: () => "" }), /tool "no spaces": a name has 1 to 64/],
    [() => ext.tool({ name: "ok" }), /the tool ok: run: expected a function, got nothing/],
    [() => ext.tool({ name: "ok", parameters: s.string(), run: () => "" }), /parameters are an s.object/],
    [() => ext.tool({ name: "ok", run: () => "", defered: true }), /has no option defered/],
    [
      () => ext.tool({ name: "ok", run: () => "", parameters: { type: "object", x: NaN } }),
      /tool ok: parameters.x: JSON/,
    ],
    [() => ext.command("a b", "", () => ""), /no spaces/],
    [() => ext.on("turn_over", () => ""), /there is no event "turn_over"; those known are session_start/],
    [() => ext.intercept("turn_end", () => ""), /cannot be intercepted/],
    [() => ext.uses("shortcut"), /there is no feature "shortcut"/],
  ])
    assert.throws(register, (error) => error instanceof RegistrationError && words.test(error.message));
});

test("the table of features is that of the specification, and types name them all", () => {
  const root = join(import.meta.dirname, "../../..");
  assert.deepEqual(FEATURES, JSON.parse(readFileSync(join(root, "spec/features.json"), "utf8")).features);
  const types = readFileSync(join(import.meta.dirname, "../src/features.d.ts"), "utf8");
  for (const name of Object.keys(FEATURES)) assert.ok(types.includes(`| "${name}"`), name);
});

test("every host service of the reference has a method of its own", async () => {
  const root = join(import.meta.dirname, "../../..");
  const reference = readFileSync(join(root, "docs/reference/host-services.md"), "utf8");
  const methods = [...reference.matchAll(/^\| `(host\/[\w.]+)`/gm)].map(([, method]) => method);
  const source = readFileSync(join(import.meta.dirname, "../src/host.js"), "utf8");
  assert.ok(methods.length > 50);
  const handled = ["host/executeTool"]; // ext.callTool
  for (const method of methods) assert.ok(source.includes(`"${method}"`) || handled.includes(method), method);
});

test("requests are taken back after their time, and when their signal is aborted", async () => {
  const ext = new Extension("demo");
  const host = await testHost(ext, { answers: { "host/waitForIdle": () => new Promise(() => undefined) } });
  await assert.rejects(ext.host.waitForIdle({ timeout: 20 }), /host\/waitForIdle: no answer within 0.02 s/);
  const control = new AbortController();
  const asked = ext.host.waitForIdle({ signal: control.signal });
  await host.next(({ type }) => type === "host_request");
  control.abort();
  await assert.rejects(asked, { name: "AbortError" });
  const back = host.said.filter(({ method }) => method === "$/cancelRequest").map(({ params }) => params.id);
  assert.deepEqual(
    back,
    host.said.filter(({ type }) => type === "host_request").map(({ id }) => id),
  );
  const left = ext.host.waitForIdle();
  await host.next(({ type }) => type === "host_request");
  const gone = assert.rejects(left, /the host has gone/);
  await host.close();
  await gone;
});

test("what the reference host of the jsonrpc dialect does otherwise is put up with", async () => {
  const ext = new Extension("demo");
  ext.messageHook(() => "one", { name: "a" }).messageHook(() => "two", { name: "b" });
  ext.intercept("tool_result", ({ text }) => (text ? text.toUpperCase() : undefined));
  const host = await testHost(ext, {
    host: "piglet",
    answers: { "host/setSessionTitle": new Error("set title: %!w(<nil>)") },
  });
  assert.deepEqual(host.registered.message_hook, [{ name: "a" }], "each that is registered would be asked for all");
  assert.equal(await host.hook("hi"), "one\ntwo");
  await ext.host.setSessionTitle("done all the same");
  const after = (details) => host.method("interceptor/after", { name: "demo", toolName: "read", details });
  assert.deepEqual(await after({ lines: 3 }), { details: { lines: 3 } }, "details that are not sent back are lost");
  assert.deepEqual(await after("text"), { details: "TEXT" });
  assert.deepEqual(await after({ output: "text", code: 0 }), { details: { output: "TEXT", code: 0 } });
  await host.close();
});

test("what comes too early is kept, and what comes too often is dropped", async () => {
  const ext = new Extension("demo");
  ext.steer("no host of this kind can");
  ext.notify("before anybody listens");
  ext.on("turn_end", () => new Promise(() => undefined));
  const heard = [];
  const zot = await testHost(ext, { host: "zot" });
  assert.match(zot.log.join(), /zot 0.1.62 does not offer steering/);
  assert.deepEqual(zot.notes, [{ level: "info", text: "before anybody listens" }]);
  await zot.close();
  const host = await testHost(ext, {
    answers: {
      "host/subscribe": ({ topic }) => {
        host.topics.push({ id: 9, topic });
        host.publish(topic, "before the answer");
        return { subscriptionId: 9 };
      },
    },
  });
  await ext.host.subscribe("tp", (data) => heard.push(data));
  assert.deepEqual(heard, ["before the answer"]);
  for (let count = 0; count < 10_010; count += 1) host.send({ type: "event", event: "turn_end" });
  assert.equal(host.log.filter((line) => line.includes("a handler of events does not return")).length, 1);
  await host.close();
});
