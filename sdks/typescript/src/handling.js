// The answers to the host's questions: which handlers are run, in which order, and what becomes of what they return or
// throw. Every question gets exactly one answer.

import { Call, callTool } from "./calls.js";
import { amended, contentOf, inDetails, Intercepted, judged, strange } from "./interception.js";
import { checked } from "./schema.js";
import { framedEvent, rawEvent, Unifier } from "./events.js";
import { encoded } from "./encoding.js";
import { BAD_PARAMS, FAILED, given, isObject, UNKNOWN_METHOD } from "./protocol.js";
import { Panel } from "./panel.js";
import { Reply, Request } from "./provider.js";
import { byPriority, isPlain, isRaw } from "./registry.js";
import * as values from "./values.js";

/** What becomes of a failing interceptor of these: it has not let it pass. */
const GUARDED = new Set(["tool_call", "turn_start", "assistant_message"]);
/** Events that wait for a handler that does not return. */
const WAITING_LIMIT = 10_000;
/** Characters of an error in place of an answer. */
const WORDS_LIMIT = 65_536;

export class Answering {
  /** @param {import("./session.js").Session} session */
  constructor(session) {
    this.session = session;
    this.registry = session.registry;
    this.unifier = new Unifier();
    /** @type {Map<string, Panel>} */
    this.panels = new Map();
    /** Events are handled one after the other. @type {Promise<unknown>} */
    this.events = Promise.resolve();
    this.waiting = 0;
    /** @type {Record<string, import("./handling.js").Method>} */
    this.methods = {
      "tool/execute": (params, signal) => this.tool(params, signal),
      "command/execute": (params, _, asked) => this.command(params, asked),
      "shortcut/handle": (params, _, asked) => this.shortcut(params, asked),
      "interceptor/before": (params, signal) => this.before(params, signal),
      "interceptor/after": (params, signal) => this.after(params, signal),
      "interceptor/event": (params, signal, asked) => this.interceptor(params, signal, asked),
      "event/dispatch": (params) => this.dispatched(params),
      "messageHook/onMessage": (params) => this.hooks(params),
      "inputTransformer/transform": (params) => this.transform(params),
      "compact/execute": (params) => this.compact(params),
      "provider/stream": (params, signal) => this.stream(params, signal),
    };
  }

  /**
   * The message that answers.
   *
   * @param {import("./protocol.js").Incoming} asked
   * @param {AbortSignal} signal
   */
  async answer(asked, signal) {
    const { dialect } = this.session;
    try {
      if (!Object.hasOwn(this.methods, asked.method))
        throw new Refusal(UNKNOWN_METHOD, `method not found: ${asked.method}`);
      if (!isObject(asked.params)) throw new Refusal(BAD_PARAMS, `${asked.method}: params must be an object`);
      const message = dialect.answer(asked, await this.methods[asked.method](asked.params, signal, asked));
      encoded(message);
      return message;
    } catch (error) {
      if (!(error instanceof Refusal || error instanceof values.ToolError)) this.session.failed(asked.method, error);
      const words = (error instanceof Refusal ? error.message : values.wordsOf(error)).slice(0, WORDS_LIMIT);
      if (asked.method === "tool/execute" && !(error instanceof Refusal)) {
        return dialect.answer(asked, new values.Result({ text: words, isError: true }));
      }
      return dialect.refuse(asked, error instanceof Refusal ? error.code : FAILED, words);
    }
  }

  /**
   * @param {any} params
   * @param {AbortSignal} signal
   */
  async tool({ callId, name, args }, signal) {
    const { session } = this;
    const tool = this.registry.tools.get(name);
    if (tool === undefined) throw new Refusal(BAD_PARAMS, `unknown tool: ${name}`);
    let result;
    try {
      const fitting = checked(tool.members.parameters, args ?? {});
      result = values.resultOf(await tool.run(fitting, new Call(session, { id: String(callId ?? ""), name }, signal)));
    } catch (error) {
      if (!(error instanceof values.ToolError)) session.failed(`the tool ${name}`, error);
      return values.failureOf(error);
    }
    await this.activate(result.activate);
    if (result.structured === undefined || session.offers("structured_content")) return result;
    return Object.assign(new values.Result({ content: result.content }), result, { structured: undefined });
  }

  /**
   * In the frames dialect a result says itself which tools it activates.
   * @param {string[]} names
   */
  async activate(names) {
    if (this.session.dialect.name === "frames") return;
    for (const name of names) {
      await this.session.guarded(`activating ${name}`, () => this.session.request("host/activateTool", { name }));
    }
  }

  /**
   * @param {any} params
   * @param {import("./protocol.js").Incoming} asked
   */
  async command({ name, args }, asked) {
    const command = this.registry.commands.get(name);
    if (command === undefined) throw new Refusal(BAD_PARAMS, `unknown command: ${name}`);
    return this.acted(await command.run(String(args ?? "")), asked);
  }

  /**
   * @param {any} params
   * @param {import("./protocol.js").Incoming} asked
   */
  async shortcut({ key }, asked) {
    const shortcut = this.registry.shortcuts.get(key);
    if (shortcut === undefined) throw new Refusal(BAD_PARAMS, `unknown shortcut: ${key}`);
    return this.acted(await shortcut.run(), asked);
  }

  /**
   * What a command returned, done or said. In the frames dialect it is the answer, in the other it comes before it.
   *
   * @param {unknown} value
   * @param {import("./protocol.js").Incoming} asked
   */
  async acted(value, asked) {
    const { session } = this;
    const framed = session.dialect.name === "frames";
    if (framed) return this.action(value);
    const { extension } = session;
    if (value === "") return asked.method === "shortcut/handle" ? { action: null } : {};
    if (typeof value === "string") extension.show(value);
    else if (value instanceof values.Insert) extension.setInput(value.text);
    else if (value instanceof values.Prompt) extension.submit(value.text);
    else if (value instanceof values.ToolPrompt) {
      const result = await callTool(session, value.tool, value.args, "", {});
      const head = `${value.tool} ${result.isError ? "failed" : "returned"}:\n`;
      extension.submit([value.prompt.trim(), head + result.text].filter(Boolean).join("\n\n"));
    } else if (value instanceof Panel) this.openPanel(value);
    else if (value !== undefined && value !== null) throw strange(value);
    return asked.method === "shortcut/handle" ? { action: null } : {};
  }

  /** @param {unknown} value */
  action(value) {
    if (value === undefined || value === null) return { action: "noop" };
    if (typeof value === "string") return { action: "display", display: value };
    if (value instanceof values.Insert) return { action: "insert", insert: value.text };
    if (value instanceof values.Prompt) return { action: "prompt", prompt: value.text };
    if (value instanceof values.ToolPrompt) {
      this.session.must("tool_prompt");
      return { action: "tool_prompt", tool_name: value.tool, tool_args: value.args, prompt: value.prompt };
    }
    if (value instanceof Panel) {
      const { panel_id: id, ...look } = this.bind(value);
      return { action: "open_panel", open_panel: { id, ...look } };
    }
    throw strange(value);
  }

  /** @param {Panel} panel */
  openPanel(panel) {
    const { session } = this;
    if (session.offers("open_panel")) session.tell("panel/open", this.bind(panel));
    else session.extension.show(panel.inWords());
  }

  /** @param {Panel} panel */
  bind(panel) {
    const { session } = this;
    this.panels.set(panel.id, panel);
    panel.screen = {
      draw: (look) => session.tell("panel/render", look),
      close: ({ id }) => {
        this.panels.delete(id);
        session.tell("panel/close", { panel_id: id });
      },
    };
    const look = panel.look();
    panel.drawn = JSON.stringify(look);
    return look;
  }

  /**
   * @param {any} params
   * @param {AbortSignal} signal
   */
  async before(params, signal) {
    const handlers = this.intercepting(params.name, "tool_call");
    const { reason, ...verdict } = await this.verdict("tool_call", params, handlers, signal);
    return reason ? { ...verdict, preview: reason } : verdict;
  }

  /**
   * @param {any} params
   * @param {AbortSignal} signal
   * @param {import("./protocol.js").Incoming} asked
   */
  async interceptor(params, signal, asked) {
    const { event } = params;
    const byEvent = asked.frame === "event_intercept";
    const handlers = byEvent ? this.subscribed(event) : this.intercepting(params.name, event);
    return this.verdict(event, params, handlers, signal);
  }

  /**
   * Those that the host asks for by event: all of them, where it knows no other way.
   * @param {string} event
   */
  subscribed(event) {
    const all = !this.session.offers("priorities");
    return this.registry.interceptors.filter((one) => one.event === event && (all || isPlain(one)));
  }

  /**
   * @param {string | undefined} name
   * @param {string} event
   */
  intercepting(name, event) {
    const { greeting } = this.session;
    const groups = greeting ? this.registry.groups(greeting) : [];
    return groups
      .filter((one) => !name || one.name === name)
      .flatMap(({ members }) => members.filter((one) => one.event === event));
  }

  /**
   * What a chain of interceptors says: each sees what the one before it left, and the first that refuses ends it.
   *
   * @param {string} event
   * @param {any} params
   * @param {any[]} handlers
   * @param {AbortSignal} signal
   */
  async verdict(event, params, handlers, signal) {
    const asked = new Intercepted(event, params, signal);
    const verdict = /** @type {Record<string, any>} */ ({ allow: true });
    for (const { handler } of handlers) {
      try {
        const said = judged(event, await handler(asked));
        if (said.allow === false) return said;
        Object.assign(verdict, said);
        Object.assign(asked, said);
      } catch (error) {
        this.session.failed(`the interceptor of ${event}`, error);
        if (GUARDED.has(event))
          return { allow: false, reason: `${this.session.extension.name}'s guard failed: ${values.wordsOf(error)}` };
      }
    }
    return verdict;
  }

  /**
   * @param {any} params
   * @param {AbortSignal} signal
   */
  async after(params, signal) {
    const { details, content } = params;
    const unchanged = details === undefined ? {} : { details };
    const asked = new Intercepted("tool_result", { ...params, content: contentOf(content, details) }, signal);
    let changed = /** @type {any} */ (undefined);
    for (const { handler } of this.intercepting(params.name, "tool_result")) {
      try {
        const said = await handler(asked);
        if (said === undefined || said === null) continue;
        changed = amended(said);
        asked.amend(changed);
      } catch (error) {
        this.session.failed("the interceptor of tool_result", error);
      }
    }
    if (changed === undefined) return unchanged;
    if (content !== undefined)
      return { ...unchanged, ...given({ content: changed.content, isError: changed.isError }) };
    return { details: inDetails(details, changed.content) };
  }

  /** @param {any} params */
  async dispatched({ type, data }) {
    const raw = rawEvent(String(type), data);
    const events = [raw, ...this.unifier.events(raw.name, isObject(data) ? data : {})];
    /** @type {unknown[]} */
    const errors = [];
    await this.inTurn(() => this.tellHandlers(events, errors));
    if (errors.length) throw errors[0];
    return { action: null };
  }

  /**
   * @param {import("./events.js").Event[]} events
   * @param {unknown[]} errors
   */
  async tellHandlers(events, errors) {
    for (const event of events) {
      for (const one of [...this.registry.handlers]) {
        if (one.event !== event.name && !(one.event === "*" && isRaw(event.name))) continue;
        try {
          await one.handler(event);
        } catch (error) {
          errors.push(error);
        }
      }
    }
  }

  /**
   * @template T
   * @param {() => Promise<T>} run
   * @returns {Promise<T>}
   */
  inTurn(run) {
    this.waiting += 1;
    const turn = this.events.then(run).finally(() => {
      this.waiting -= 1;
    });
    this.events = turn.catch(() => undefined);
    return turn;
  }

  /** @param {any} params */
  async hooks({ message }) {
    const said = [];
    for (const { run } of byPriority(this.registry.hooks)) {
      said.push(await run(String(message ?? "")));
    }
    const injection = said.filter(Boolean).join("\n");
    return injection ? { injection } : {};
  }

  /** @param {any} params */
  async transform({ input }) {
    let output = String(input ?? "");
    for (const { run } of byPriority(this.registry.transformers)) {
      const said = await run(output);
      if (said instanceof values.Handled) return { output: "", handled: true };
      if (typeof said === "string") output = said;
      else if (said !== undefined && said !== null) throw strange(said);
    }
    return { output, handled: false };
  }

  /** @param {any} params */
  async compact({ messages }) {
    // The host has one compactor of an extension at a time: the last that was registered.
    const compactor = [...this.registry.compactors.values()].at(-1);
    if (compactor === undefined) throw new Refusal(BAD_PARAMS, "there is no compactor");
    const kept = await compactor.run(messages ?? []);
    if (!Array.isArray(kept)) throw new TypeError("a compactor returns a list of messages");
    return { messages: kept };
  }

  /**
   * @param {any} params
   * @param {AbortSignal} signal
   */
  async stream(params, signal) {
    const { session } = this;
    const request = new Request(params);
    const api = request.model.api ?? request.model.provider ?? "";
    const all = [...this.registry.providers.values()];
    const provider = this.registry.providers.get(api) ?? (all.length === 1 ? all[0] : undefined);
    if (provider === undefined) throw new Refusal(BAD_PARAMS, `unknown API: ${api}`);
    const reply = new Reply(params.requestId, signal, async (delta) => {
      if (!signal.aborted) session.tell("provider/delta", delta);
      await session.wire.room();
    });
    const message = await provider.run(request, reply);
    return { message: isObject(message) ? message : reply.message(request, provider) };
  }

  /**
   * @param {string} method
   * @param {any} params
   */
  notice(method, params) {
    switch (method) {
      case "event":
        return this.framed(params);
      case "eventBus/event":
        return this.session.extension.host.published(params);
      case "panel/key":
        return this.inPanel(params, (panel) => panel.onKey(String(params.key), String(params.text ?? "")));
      case "panel/resize":
        return this.inPanel(params, (panel) => {
          panel.width = params.width;
          panel.height = params.height;
          return panel.onResize(params.width, params.height);
        });
      case "panel/closed":
        return this.inPanel(params, (panel) => {
          this.panels.delete(panel.id);
          panel.screen = undefined;
          return panel.onClose();
        });
      default:
        return undefined;
    }
  }

  /** @param {any} params */
  framed(params) {
    if (this.waiting >= WAITING_LIMIT)
      return this.session.complain(
        "slow",
        `a handler of events does not return; events are dropped while ${WAITING_LIMIT} wait`,
      );
    /** @type {unknown[]} */
    const errors = [];
    const event = framedEvent(params);
    void this.inTurn(() => this.tellHandlers([event], errors)).then(() => {
      for (const error of errors) this.session.failed(`a handler of ${event.name}`, error);
    });
  }

  /**
   * Things happen to a panel one after the other, and it is drawn after each.
   *
   * @param {any} params
   * @param {(panel: Panel) => unknown} happen
   */
  inPanel(params, happen) {
    const panel = this.panels.get(params.panel_id);
    if (panel === undefined) return;
    panel.turn = panel.turn.then(() =>
      this.session.guarded(`the panel ${panel.title || panel.id}`, async () => {
        await happen(panel);
        panel.update();
      }),
    );
  }
}

/** The question itself is at fault, or nobody is there for it. */
class Refusal extends Error {
  /**
   * @param {number} code
   * @param {string} message
   */
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}
