// Plays the host of a transcript against an extension that is built through the SDK's public API, over real pipes.
// Handlers of that extension wait until the transcript says what they return.

import { closeSync, openSync, writeSync, constants } from "node:fs";
import { Socket } from "node:net";
import { Extension, Insert, Prompt, Result, ToolError, ToolPrompt } from "../src/index.js";
import { Lines, Pipes } from "../src/transport.js";
import { difference, filled } from "./matching.js";
import { joined, METHODS, readable, refusal, returned, Shown, shownIn, told, withId } from "./spelling.js";

const PATIENCE = 5000;
const HILT = {
  frames: ["call_tool", "host_request", "host_notify", "ext_request", "register", "tool_progress", "tool_cancel"],
  jsonrpc: [
    "panel/open",
    "panel/render",
    "panel/close",
    "tool/progress",
    "interceptor/event",
    "interceptor/content",
    "register/late",
    "register/models",
    "host/unsubscribe",
    "setStatus",
  ],
};
const REGISTERING = /^(register|subscribe)/;

export class Player {
  constructor(transcript, fifos) {
    const [header, ...steps] = transcript;
    this.framed = header.dialect !== "jsonrpc";
    this.steps = steps.map(readable).filter((step) => step.ext || step.host || step.host_end);
    this.variables = new Map();
    /** What the extension said and nobody has looked at. */
    this.heard = [];
    /** Handlers that wait to be told what to return: those not yet claimed, and those by the id of their question. */
    this.unclaimed = [];
    this.open = new Map();
    /** Ids of the extension's own requests: the transcript's, as it is written there, to the real ones. */
    this.requests = new Map();
    this.cancellers = new Map();
    this.panels = new Map();
    this.extension = new Extension("demo", "1.0.0");
    this.connect(fifos);
  }

  connect([toExtension, fromExtension]) {
    const readers = [toExtension, fromExtension].map((path) =>
      openSync(path, constants.O_RDONLY | constants.O_NONBLOCK),
    );
    const writers = [toExtension, fromExtension].map((path) => openSync(path, constants.O_WRONLY));
    this.input = writers[0];
    this.wire = new Pipes(readers[0], writers[1]);
    this.wire.log = (text) => (this.log ??= []).push(text);
    this.output = new Socket({ fd: readers[1], readable: true, writable: false });
    const lines = new Lines(
      (line) => this.hear(JSON.parse(line)),
      (bytes) => this.hear({ tooLong: bytes }),
    );
    this.output.on("data", (chunk) => lines.feed(chunk));
  }

  async play() {
    try {
      await this.playSteps();
    } finally {
      this.closeInput();
      await this.session?.done;
      this.output.destroy();
      this.wire.writer?.destroy();
    }
  }

  async playSteps() {
    for (const step of this.opening()) this.register(step.ext);
    this.session = this.extension.connect(this.wire, this.framed ? "frames" : "jsonrpc");
    await this.handshake();
    for (const step of this.rest()) {
      if (step.host) await this.say(step.host);
      else if (step.ext) await this.expect(step.ext);
      else this.closeInput();
    }
    for (const { reject } of [...this.open.values(), ...this.unclaimed])
      reject(new ToolError("the transcript is over"));
    const left = this.heard.filter((message) => !this.tolerated(message));
    this.closeInput();
    const code = await bounded(this.session.done, "the end");
    if (left.length) throw new Error(`it also said ${JSON.stringify(left)}`);
    if (code !== 0) throw new Error(`it exited with ${code}`);
  }

  // The handshake: what is registered in it, in which order it pleases

  ready() {
    const isReady = ({ ext }) => ext && (this.framed ? ext.type === "ready" : ext.id === 1 && ext.result !== undefined);
    return this.steps.findIndex(isReady);
  }

  opening() {
    return this.steps.slice(0, this.ready()).filter(({ ext }) => ext && REGISTERING.test(ext.type ?? ext.method));
  }

  rest() {
    return this.steps.slice(this.ready() + 1).filter(({ host }) => host?.type !== "hello_ack");
  }

  async handshake() {
    const before = this.steps.slice(0, this.ready() + 1);
    const hello = before.find(({ ext }) => ext?.type === "hello")?.ext;
    // One that says all at once is greeted all the same before it is ready.
    const greeting = (before.find(({ host }) => host) ?? this.steps.find(({ host }) => host))?.host;
    if (hello) {
      const { capabilities } = await this.match({ ...hello, capabilities: "$any" });
      const lacking = (hello.capabilities ?? []).filter((one) => !capabilities.includes(one));
      if (lacking.length) throw new Error(`its hello lacks ${lacking}`);
    }
    const message = filled(greeting, this.variables);
    const capabilities = HILT[this.framed ? "frames" : "jsonrpc"];
    if (this.framed) Object.assign(message, { host: "hilt", host_version: "0.1.0", capabilities, data_dir: "" });
    else Object.assign(message.params, { host: "hilt", hostVersion: "0.1.0", capabilities });
    this.write(message);
    const said = [];
    while (said.at(-1)?.type !== "ready" && !(said.at(-1)?.id === 1)) said.push(await this.next());
    this.compare(
      this.opening().map(({ ext }) => ext),
      said.slice(0, -1),
    );
    const last = difference(before.at(-1).ext, said.at(-1), this.variables);
    if (last) throw new Error(`${JSON.stringify(said.at(-1))}: ${last}`);
  }

  compare(expected, said) {
    const wanted = joined(expected);
    const got = joined(said);
    for (const pattern of wanted) {
      const at = got.findIndex((message) => difference(pattern, message, this.variables) === undefined);
      if (at < 0) throw new Error(`it did not register ${JSON.stringify(pattern)} but ${JSON.stringify(got)}`);
      got.splice(at, 1);
    }
    if (got.length) throw new Error(`it also registered ${JSON.stringify(got)}`);
  }

  register(message) {
    const { extension } = this;
    const kind = this.framed
      ? message.type === "register"
        ? message.kind
        : message.type.replace("register_", "")
      : message.method.slice(9);
    const members = this.framed ? message : message.params;
    const { name, priority, description } = members;
    const waits = (method) => (value, call) => this.waiting(method, value, call);
    switch (kind) {
      case "tool": {
        const parameters = members.schema ?? members.parameters ?? undefined;
        return extension.tool({
          name,
          description,
          parameters,
          deferred: members.deferred,
          interruptible: members.interruptBehavior !== "block",
          run: waits("tool/execute"),
        });
      }
      case "command":
        return extension.command(name, description, waits("command/execute"), { immediate: members.immediate });
      case "subscribe":
        if (members.events) extension.on(members.events, () => undefined);
        for (const event of members.intercept ?? []) extension.intercept(event, waits("interceptor/event"));
        return undefined;
      case "shortcut":
        return extension.shortcut(members.key, description, waits("shortcut/handle"));
      case "promptSection":
        return extension.promptSection(members.title, members.content, {
          order: members.order,
          tokenHint: members.tokenHint,
        });
      case "interceptor":
        if (members.events)
          for (const event of members.events)
            extension.intercept(event, waits("interceptor/event"), { name, priority });
        else {
          extension.intercept("tool_call", waits("interceptor/before"), { name, priority });
          extension.intercept("tool_result", waits("interceptor/after"), { name, priority });
        }
        return undefined;
      case "event_handler":
      case "eventHandler":
        return extension.on(members.events ?? "*", waits("event/dispatch"), { name, priority });
      case "message_hook":
      case "messageHook":
        return extension.messageHook(
          this.hooked ? () => undefined : ((this.hooked = true), waits("messageHook/onMessage")),
          { name, priority },
        );
      case "input_transformer":
      case "inputTransformer":
        return extension.inputTransformer(waits("inputTransformer/transform"), { name, priority });
      case "compactor":
        return extension.compactor(waits("compact/execute"), { name, threshold: members.threshold });
      case "provider":
        return extension.provider(members.api, waits("provider/stream"), { models: members.models });
      default:
        throw new Error(`the player cannot register ${kind}`);
    }
  }

  waiting(method, value, call) {
    return new Promise((resolve, reject) => {
      this.unclaimed.push({ method, value, call, resolve, reject });
      this.wake();
    });
  }

  // The host's steps

  async say(pattern) {
    const isAnswer = this.framed
      ? ["tool_result", "host_response"].includes(pattern.type)
      : pattern.method === undefined;
    const message = filled(pattern, this.variables);
    if (isAnswer) message.id = this.requests.get(pattern.id);
    this.write(message);
    const method = this.framed ? (METHODS[message.type] ?? message.method) : message.method;
    if (message.id === undefined || isAnswer || message.type === "tool_cancel") return;
    const question = await this.until(
      () => this.unclaimed.findIndex((one) => one.method === method),
      (at) => at >= 0,
      `a handler of ${method}`,
    );
    this.open.set(message.id, this.unclaimed.splice(question, 1)[0]);
  }

  write(message) {
    writeSync(this.input, `${JSON.stringify(message)}\n`);
  }

  closeInput() {
    if (this.input !== undefined) closeSync(this.input);
    this.input = undefined;
  }

  // The extension's steps

  async expect(pattern) {
    const wanted = await this.cause(pattern);
    if (wanted === undefined) return;
    const message = await this.match(wanted);
    const asks = this.framed
      ? ["call_tool", "host_request"].includes(pattern.type)
      : pattern.method && pattern.id !== undefined;
    if (asks) this.requests.set(pattern.id, message.id);
  }

  /** Has the extension do what the pattern shows, and gives the pattern of what it then says. */
  async cause(pattern) {
    const asked =
      pattern.id !== undefined && !pattern.method ? this.open.get(filled(pattern.id, this.variables)) : undefined;
    if (asked && (pattern.type ?? "") !== "tool_progress" && pattern.type !== "call_tool")
      return this.answer(asked, pattern);
    const [method, params] = this.framed ? told(pattern) : [pattern.method, pattern.params ?? {}];
    if (REGISTERING.test(pattern.type ?? method)) {
      this.register(pattern);
      return pattern;
    }
    return this.tell(method, params ?? {}, pattern);
  }

  async tell(method, params, pattern) {
    const { extension } = this;
    switch (method) {
      case "shutdown_ack":
        return pattern;
      case "notify":
        extension.notify(params.message, params.level);
        return pattern;
      case "clear_notes":
        extension.clearNotes();
        return pattern;
      case "showMessage":
        extension.show(params.text);
        return pattern;
      case "log":
        extension.log(params.message, params.level);
        return pattern;
      case "setWidget":
        extension.widget(params.key, params.content, params.placement);
        return pattern;
      case "showOverlay": {
        const { key, content, ...look } = params;
        extension.overlay(key, content, look);
        return pattern;
      }
      case "closeOverlay":
        extension.closeOverlay(params.key);
        return pattern;
      case "setStatus":
        extension.status(params.key, params.text);
        return pattern;
      case "setInputText":
        extension.setInput(params.text);
        return pattern;
      case "sendMessage":
        extension.submit(params.content);
        return pattern;
      case "steer":
        extension.steer(params.content);
        return pattern;
      case "abort":
        extension.abort();
        return pattern;
      case "abortWithMarker":
        extension.abort(params.reason);
        return pattern;
      case "tool/progress": {
        const asked = [...this.open.values()].find((one) => one.call?.id === filled(params.callId, this.variables));
        asked.call.progress(params.text);
        return pattern;
      }
      case "panel/open": {
        const panel = this.panel(params);
        extension.open(panel);
        return pattern;
      }
      case "panel/render":
        Object.assign(this.panels.get(params.panel_id), shownIn(params)).update();
        return pattern;
      case "panel/close":
        this.panels.get(params.panel_id).close();
        return pattern;
      case "provider/delta":
        return this.stream(params, pattern);
      case "$/cancelRequest":
      case "call_tool_cancel": {
        const id = params.id;
        this.cancellers.get(id).abort();
        return withId(pattern, this.requests.get(id));
      }
      default:
        return this.request(method, params, pattern);
    }
  }

  request(method, params, pattern) {
    const canceller = new AbortController();
    this.cancellers.set(pattern.id, canceller);
    const asked = filled(params, this.variables);
    const { extension } = this;
    const options = { signal: canceller.signal };
    const parent = asked.callId && [...this.open.values()].find((one) => one.call?.id === asked.callId);
    const answered =
      method === "host/executeTool" && this.framed
        ? parent
          ? parent.call.callTool(asked.name, asked.args, options)
          : extension.callTool(asked.name, asked.args, options)
        : method === "host/subscribe"
          ? extension.host.subscribe(asked.topic, () => undefined)
          : extension.host.request(method, asked, options);
    answered.catch(() => undefined);
    return { ...pattern, id: "$any" };
  }

  stream(params, pattern) {
    const asked = [...this.open.values()].find(
      (one) =>
        one.value.requestId === undefined &&
        one.method === "provider/stream" &&
        one.call.requestId === filled(params.requestId, this.variables),
    );
    const reply = asked.call;
    if (params.type === "text_delta") {
      void reply.text(params.delta);
      void reply.text(this.restOf(params.delta));
    } else if (params.type === "thinking_delta") void reply.thinking(params.delta);
    else if (params.type === "toolcall_delta") void reply.toolCallDelta("c1", "add", params.delta);
    else if (params.type === "toolcall_end")
      void reply.toolCall(params.tool.name, JSON.parse(params.tool.arguments), params.tool.id);
    return pattern;
  }

  /** What the whole message has behind a piece; other pieces than those of the transcript are tolerated. */
  restOf(delta) {
    const messages = this.steps.flatMap(({ ext }) => ext?.result?.message?.content ?? []);
    return messages.find(({ text }) => text?.startsWith(delta))?.text.slice(delta.length) ?? "";
  }

  panel({ id, panel_id: other, ...look }) {
    const panel = new Shown({ id: id ?? other, ...look }, look.lines);
    this.panels.set(panel.id, panel);
    return panel;
  }

  // Answers to the host's questions

  async answer(asked, pattern) {
    const { method } = asked;
    const result = this.framed && pattern.type !== "ext_response" ? pattern : pattern.result;
    this.open.delete(filled(pattern.id, this.variables));
    if (pattern.error && pattern.type !== "command_response") {
      const { message } = pattern.error;
      asked.reject(new ToolError(message));
      if (method === "tool/execute") {
        // A tool that fails has a result all the same.
        return { jsonrpc: "2.0", id: pattern.id, result: { content: [{ type: "text", text: message }], isError: true } };
      }
      return method.startsWith("interceptor/") ? refusal(method, pattern) : pattern;
    }
    if (method === "tool/execute") return this.answerTool(asked, result, pattern);
    if (method === "command/execute" || method === "shortcut/handle") return this.answerCommand(asked, result, pattern);
    if (method === "event/dispatch") return this.answerAction(asked, result, pattern);
    if (method === "provider/stream") return this.answerStream(asked, result, pattern);
    asked.resolve(returned(method, result, pattern.type === "event_intercept_response"));
    return pattern;
  }

  answerTool(asked, result, pattern) {
    const content = result.content.map((block) =>
      block.type === "image"
        ? { ...block, mime: block.mime_type ?? block.mime }
        : { type: "text", text: block.text ?? block.Text },
    );
    const failed = result.is_error ?? result.isError;
    if (failed) asked.reject(new ToolError(content[0].text, { code: result.errorCode, hint: result.errorHint }));
    else asked.resolve(new Result({ content, structured: result.structured_content, activate: result.activate_tools }));
    // Hosts take keys in any case; the SDK writes them in lower case.
    return JSON.parse(JSON.stringify(pattern).replace(/"(Type|Text|Data|Mime)":/g, (key) => key.toLowerCase()));
  }

  async answerCommand(asked, result, pattern) {
    if (result.error) {
      asked.reject(new ToolError(result.error));
      // What stands beside an error is not looked at, and not said.
      return { ...pattern, action: undefined, display: undefined };
    }
    if (!this.framed) return this.answerAction(asked, result, pattern);
    const { action, display, insert, prompt, open_panel: panel } = result;
    const values = {
      display: () => display,
      insert: () => new Insert(insert),
      prompt: () => new Prompt(prompt),
      tool_prompt: () => new ToolPrompt(result.tool_name, result.tool_args, prompt),
      open_panel: () => this.panel(panel),
      noop: () => undefined,
    };
    asked.resolve(values[action ?? "noop"]());
    return action ? pattern : { ...pattern, action: "$any" };
  }

  /** An action is a call of the SDK before the answer. */
  async answerAction(asked, result, pattern) {
    const { action } = result;
    if (!action) {
      asked.resolve();
      return pattern;
    }
    await this.match(await this.tell(action.type, action.payload, this.said(action.type, action.payload)));
    asked.resolve();
    return { ...pattern, result: { action: null } };
  }

  said(method, params) {
    if (!this.framed) return { jsonrpc: "2.0", method, params };
    return method === "notify" ? { type: "notify", ...params } : { type: "host_notify", method, params };
  }

  answerStream(asked, { message }, pattern) {
    const reply = asked.call;
    for (const block of message.content) {
      const said = reply.content.findLast((one) => one.text !== undefined && block.text?.startsWith(one.text));
      if (block.text !== undefined) void reply.text(block.text.slice(said?.text.length ?? 0));
      else if (block.name && !reply.content.some((one) => one.id === block.id))
        void reply.toolCall(block.name, block.arguments, block.id);
    }
    if (message.usage) reply.usage(message.usage.inputTokens, message.usage.outputTokens);
    asked.resolve();
    const wanted = { ...message, timestamp: "$any" };
    return { ...pattern, result: { message: wanted } };
  }

  // What the extension says

  hear(message) {
    this.heard.push(message);
    this.wake();
  }

  wake() {
    this.woken?.();
  }

  async until(look, good, what) {
    const limit = Date.now() + PATIENCE;
    for (let found = look(); ; found = look()) {
      if (good(found)) return found;
      const left = limit - Date.now();
      if (left <= 0)
        throw new Error(
          `waited in vain for ${what}; it said ${JSON.stringify(this.heard)} and logged ${(this.log ?? []).join("\n")}`,
        );
      await new Promise((resolve) => {
        const timer = setTimeout(resolve, left);
        this.woken = () => (clearTimeout(timer), resolve());
      });
    }
  }

  async next(what = "a message") {
    await this.until(
      () => this.heard.length,
      (count) => count > 0,
      what,
    );
    return this.heard.shift();
  }

  async match(pattern) {
    for (;;) {
      const message = await this.next(JSON.stringify(pattern));
      const found = difference(pattern, message, this.variables);
      if (found === undefined) return message;
      if (!this.tolerated(message))
        throw new Error(`expected ${JSON.stringify(pattern)}, it said ${JSON.stringify(message)}: ${found}`);
    }
  }

  /** Pieces of an answer are for showing; hosts ignore an answer that comes after they gave up. */
  tolerated({ method, id, type, result, error }) {
    if (method === "provider/delta" || (type === "host_notify" && method === "provider/delta")) return true;
    return (
      id !== undefined &&
      (type === "tool_result" || result !== undefined || error !== undefined) &&
      this.input === undefined
    );
  }
}

async function bounded(work, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`waited in vain for ${what}`)), PATIENCE);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}
