// A host in memory, for tests of extensions: it plays hilt, zot or piglet over the real codec of either dialect,
// without a process. What an extension says is parsed as a host would parse it. Every wait is bounded.

import { bounded, given, notification, Playing, snaked } from "./playing.js";
import { Result } from "./values.js";

const CAPABILITIES = {
  hilt: {
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
  },
  zot: { frames: [], jsonrpc: [] },
  piglet: { frames: [], jsonrpc: [] },
};

/**
 * Starts the extension against a host in memory, and waits until it is ready.
 *
 * @param {import("./extension.js").Extension} extension
 * @param {import("./testing.js").HostOptions} [options]
 */
export async function testHost(extension, options = {}) {
  const host = new TestHost(extension, options);
  await host.open();
  return host;
}

export class TestHost extends Playing {
  get missing() {
    return this.extension.missing;
  }

  async open() {
    const capabilities = this.options.capabilities ?? CAPABILITIES[this.name][this.dialect];
    const cwd = this.options.cwd ?? process.cwd();
    const { dataDir = "" } = this.options;
    if (this.framed) {
      const more = this.name === "hilt" ? { host: "hilt", host_version: "0.1.0" } : {};
      const places = { cwd, extension_dir: process.cwd(), data_dir: dataDir };
      const known = capabilities.length ? { capabilities } : {};
      const opened = this.next((message) => message.type === "ready");
      this.send({
        type: "hello_ack",
        protocol_version: 1,
        zot_version: "0.1.62",
        provider: "demo",
        model: "demo",
        ...known,
        ...places,
        ...more,
      });
      return this.raced(opened);
    }
    const more = this.name === "hilt" ? { host: "hilt", hostVersion: "0.1.0", capabilities } : {};
    return this.raced(this.request("initialize", { protocolVersion: "5", cwd, configDir: dataDir, ...more }));
  }

  /**
   * @template T
   * @param {Promise<T>} opened
   */
  async raced(opened) {
    const refused = this.session.done.then((code) => {
      throw new Error(`${this.extension.name} ended with ${code}: ${this.log.join("\n")}`);
    });
    refused.catch(() => undefined);
    await bounded(Promise.race([opened, refused]), "it was not ready");
  }

  /**
   * Calls a tool as a model would.
   *
   * @param {string} name
   * @param {Record<string, unknown>} [args]
   * @param {{ signal?: AbortSignal }} [options] a signal that cancels the call
   * @returns {Promise<Result>}
   */
  async call(name, args = {}, options = {}) {
    const callId = `call_${this.counted + 1}`;
    const { id, answer } = this.ask(
      this.framed ? { type: "tool_call", name, args } : { method: "tool/execute", params: { callId, name, args } },
    );
    const cancel = () => this.send(this.framed ? { type: "tool_cancel", id } : notification("$/cancelRequest", { id }));
    options.signal?.addEventListener("abort", cancel, { once: true });
    const told = await bounded(orWords(answer), `the tool ${name} did not answer`);
    const result = told.words === undefined ? resultOf(told) : new Result({ text: told.words, isError: true });
    result.progress = this.progress.get(this.framed ? String(id) : callId) ?? [];
    return result;
  }

  /**
   * Runs a command: `/hi Ada`.
   * @param {string} line
   */
  async run(line) {
    const [, name, args = ""] = /^\/?(\S+)\s*([\s\S]*)$/.exec(line) ?? [];
    const asked = this.framed
      ? { type: "command_invoked", name, ...(args.trim() ? { args: args.trim() } : {}) }
      : { method: "command/execute", params: { name, args: args.trim() } };
    return this.acted(asked, line);
  }

  /**
   * Presses a key that is registered.
   * @param {string} key
   */
  async press(key) {
    return this.acted(
      this.framed ? { type: "shortcut_invoked", key } : { method: "shortcut/handle", params: { key } },
      key,
    );
  }

  /**
   * @param {Record<string, any>} asked
   * @param {string} what
   */
  async acted(asked, what) {
    const before = this.said.length;
    const told = await bounded(orWords(this.ask(asked).answer), `${what} was not answered`);
    const said = this.said.slice(before);
    if (told.words !== undefined) return { ...NOTHING, error: told.words };
    return this.framed ? framedAction(told, this) : numberedAction(told, said, this);
  }

  /**
   * Asks interceptors about a tool call.
   *
   * @param {string} tool
   * @param {Record<string, unknown>} [args]
   * @param {{ origin?: string }} [more]
   */
  async intercept(tool, args = {}, more = {}) {
    return this.verdict(
      "tool_call",
      { tool_id: "call_1", tool_name: tool, tool_args: args, origin_extension: more.origin },
      "interceptor/before",
      {
        toolName: tool,
        args,
        callId: "call_1",
        origin: more.origin,
      },
    );
  }

  /** @param {number} [step] */
  async interceptTurn(step = 1) {
    return this.verdict("turn_start", { step }, "interceptor/event", { step });
  }

  /** @param {string} text */
  async interceptMessage(text) {
    return this.verdict("assistant_message", { text }, "interceptor/event", { text });
  }

  /** @param {string} systemPrompt */
  async interceptPrompt(systemPrompt) {
    return this.verdict("before_agent_start", { system_prompt: systemPrompt }, "interceptor/event", { systemPrompt });
  }

  /**
   * Shows interceptors what a tool returned, and gives what they made of it.
   *
   * @param {string} tool
   * @param {string | Result} result
   * @returns {Promise<import("./testing.js").Verdict>}
   */
  async interceptResult(tool, result) {
    let shown = typeof result === "string" ? new Result(result) : result;
    for (const { name } of this.registered.interceptor ?? []) {
      const told = await this.method("interceptor/after", {
        name,
        toolName: tool,
        content: shown.content,
        isError: shown.isError,
        details: { content: shown.content },
      });
      if (told.content === undefined) continue;
      const content = typeof told.content === "string" ? [{ type: "text", text: told.content }] : told.content;
      shown = new Result({ content, isError: told.isError ?? shown.isError });
    }
    return { blocked: false, reason: "", text: shown.text, result: shown };
  }

  /**
   * @param {string} event
   * @param {Record<string, any>} framed
   * @param {string} method
   * @param {Record<string, any>} params
   */
  async verdict(event, framed, method, params) {
    const asked = { ...params };
    const verdict = {
      blocked: false,
      reason: "",
      args: params.args,
      text: params.text,
      systemPrompt: params.systemPrompt,
    };
    const subscribed = this.framed && (this.registered.subscribe ?? []).some((one) => one.intercept?.includes(event));
    /** @type {any[]} */
    const answers = subscribed
      ? [
          numberedVerdict(
            await bounded(
              this.ask(given({ type: "event_intercept", event, ...framed })).answer,
              `no verdict on ${event}`,
            ),
          ),
        ]
      : [];
    for (const { name, events } of this.registered.interceptor ?? []) {
      if (event === "tool_call" ? events && !events.includes(event) : !events?.includes(event)) continue;
      answers.push(
        await this.method(method, given({ name, event: method === "interceptor/event" ? event : undefined, ...asked })),
      );
    }
    for (const told of answers) {
      if (told.allow === false) return { ...verdict, blocked: true, reason: told.reason ?? told.preview ?? "" };
      verdict.args = told.args ?? verdict.args;
      verdict.text = told.text ?? verdict.text;
      verdict.systemPrompt = told.systemPrompt ?? verdict.systemPrompt;
    }
    return verdict;
  }

  /**
   * Tells of an event, under the name and with the members of the frames dialect; one that begins with `Event` has
   * those of the other dialect. Resolves when the handlers are done.
   *
   * @param {string} event
   * @param {Record<string, any>} [members]
   */
  async emit(event, members = {}) {
    if (event.startsWith("Event")) await this.method("event/dispatch", { type: event, data: members });
    else if (this.framed) this.send({ type: "event", event, ...snaked(members) });
    else await this.method("event/dispatch", counterpart(event, members));
    await bounded(this.session.answering.events, `a handler of ${event} did not return`);
  }

  /**
   * Presses a key in a panel, and resolves when it is drawn.
   *
   * @param {import("./panel.js").Panel | { id: string } | string} panel
   * @param {string} key a name such as `down`; one character is typed
   */
  async key(panel, key) {
    const id = typeof panel === "string" ? panel : panel.id;
    const typed = [...key].length === 1;
    await this.inPanel("panel_key", "panel/key", {
      panel_id: id,
      key: typed ? "rune" : key,
      ...(typed ? { text: key } : {}),
    });
  }

  /**
   * @param {import("./panel.js").Panel | { id: string } | string} panel
   * @param {number} width
   * @param {number} height
   */
  async resize(panel, width, height) {
    await this.inPanel("panel_resize", "panel/resize", {
      panel_id: typeof panel === "string" ? panel : panel.id,
      width,
      height,
    });
  }

  /** @param {import("./panel.js").Panel | { id: string } | string} panel */
  async closePanel(panel) {
    const id = typeof panel === "string" ? panel : panel.id;
    this.panels.delete(id);
    await this.inPanel("panel_close", "panel/closed", { panel_id: id });
  }

  /**
   * @param {string} type
   * @param {string} method
   * @param {Record<string, any>} params
   */
  async inPanel(type, method, params) {
    const panel = this.session.answering.panels.get(params.panel_id);
    if (panel === undefined)
      throw new Error(`no panel ${params.panel_id} is open; there are ${[...this.panels.keys()].join(", ") || "none"}`);
    this.send(this.framed ? { type, ...params } : notification(method, params));
    await bounded(panel.turn, `the panel ${params.panel_id} did not return`);
  }

  /** @param {string} message what the user says; the answer is what the model is told with it */
  async hook(message) {
    return (await this.method("messageHook/onMessage", { message })).injection ?? "";
  }

  /** @param {string} input what the user types; the answer is what is sent, or null when it was dealt with */
  async transform(input) {
    const { output, handled } = await this.method("inputTransformer/transform", { input });
    return handled ? null : output;
  }

  /** @param {any[]} messages */
  async compact(messages) {
    return (await this.method("compact/execute", { messages })).messages;
  }

  /**
   * Asks a provider: the first, and its first model, if none is named.
   *
   * @param {string | any[]} prompt
   * @param {{ api?: string, model?: string, system?: string, tools?: any[], options?: any }} [more]
   */
  async stream(prompt, more = {}) {
    const providers = this.registered.provider ?? [];
    const provider = providers.find((one) => one.api === more.api) ?? providers[0] ?? {};
    const api = more.api ?? provider.api ?? "";
    const messages = typeof prompt === "string" ? [{ role: "user", content: prompt }] : prompt;
    const id = more.model ?? provider.models?.[0]?.id ?? "";
    const model = { id, name: id, api, provider: api };
    const { system = "", tools = [], options = {} } = more;
    const { message } = await this.method("provider/stream", {
      requestId: this.counted + 1,
      model,
      system,
      messages,
      tools,
      options,
    });
    return answerOf(message);
  }

  /** Ends it as a host would, and gives its exit code. */
  async close() {
    this.send(this.framed ? { type: "shutdown" } : notification("shutdown", {}));
    this.wire.listener?.ended();
    return bounded(this.session.done, "it did not end");
  }
}

/**
 * @param {any} message
 * @returns {import("./testing.js").StreamAnswer}
 */
function answerOf(message) {
  const parts = message.content ?? [];
  const joined = (/** @type {string} */ kind) =>
    parts.map((/** @type {any} */ part) => part[kind] ?? "").join("");
  const calls = parts.filter((/** @type {any} */ part) => part.arguments !== undefined);
  return {
    text: joined("text"),
    thinking: joined("thinking"),
    calls: calls.map((/** @type {any} */ part) => ({ name: part.name, args: part.arguments })),
    message,
  };
}

/**
 * An event as the jsonrpc dialect tells it.
 *
 * @param {string} event
 * @param {Record<string, any>} members
 */
function counterpart(event, members) {
  const called = { ToolCallID: members.toolId ?? "call_1", ToolName: members.toolName ?? "" };
  const stop = { end: "stop", tool_use: "toolUse" }[/** @type {"end"} */ (members.stop ?? "end")] ?? members.stop;
  /** @type {Record<string, [string, Record<string, any>]>} */
  const told = {
    turn_start: ["EventTurnStart", {}],
    turn_end: ["EventTurnEnd", { Assistant: { stopReason: stop, error: members.error } }],
    assistant_message: ["EventStreamDone", { Message: { content: [{ type: "text", text: members.text ?? "" }] } }],
    user_prompt_submit: ["EventMessagePre", { Content: members.text ?? "" }],
    post_compact: ["EventCompact", { After: members.messageCount, TokensAtCompact: members.tokenEstimate }],
    tool_call: ["EventToolStart", { ...called, Args: members.toolArgs }],
    tool_result: ["EventToolEnd", { ...called, Result: members.result, IsError: members.result?.isError ?? false }],
  };
  if (told[event] === undefined) throw new Error(`there is no ${event} in the jsonrpc dialect`);
  return { type: told[event][0], data: told[event][1] };
}

/**
 * An answer that is an error, as a value: in the other dialect it is one.
 *
 * @param {Promise<any>} answer
 */
function orWords(answer) {
  return answer.catch((error) => ({ words: error.message }));
}

/**
 * @param {any} told
 * @returns {Result}
 */
function resultOf(told) {
  const {
    content = [],
    isError,
    is_error: failed,
    structured_content: structured,
    activate_tools: activate,
    errorCode: code,
    errorHint: hint,
  } = told;
  const blocks = content.map((/** @type {any} */ { mime_type: mime, ...rest }) =>
    mime === undefined ? rest : { ...rest, mime },
  );
  return new Result({ content: blocks, isError: isError ?? failed ?? false, structured, activate, code, hint });
}

/** @param {any} frame */
function numberedVerdict({ block, reason, modified_args: args, replace_text: text, system_prompt: systemPrompt }) {
  return { allow: !block, reason, args, text, systemPrompt };
}

const NOTHING = { shown: "", inserted: "", prompt: "", tool: "", args: {}, error: "", panel: undefined };

/**
 * @param {any} told
 * @param {TestHost} host
 */
function framedAction(told, host) {
  if (told.error) return { ...NOTHING, error: told.error };
  const panel = told.open_panel && host.drawn({ ...told.open_panel, panel_id: told.open_panel.id });
  return {
    ...NOTHING,
    shown: told.display ?? "",
    inserted: told.insert ?? "",
    prompt: told.prompt ?? "",
    tool: told.tool_name ?? "",
    args: told.tool_args ?? {},
    panel,
  };
}

/**
 * @param {any} _told
 * @param {any[]} said
 * @param {TestHost} host
 */
function numberedAction(_told, said, host) {
  const last = (/** @type {string} */ method, /** @type {string} */ member) =>
    said.findLast((one) => one.method === method)?.params[member] ?? "";
  const opened = last("panel/open", "panel_id");
  return {
    ...NOTHING,
    shown: last("showMessage", "text"),
    inserted: last("setInputText", "text"),
    prompt: last("sendMessage", "content"),
    panel: opened ? host.panels.get(opened) : undefined,
  };
}
