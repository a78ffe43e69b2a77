// The host's half of the wire in memory: what it hears is parsed, kept and answered, in either dialect.

import { encoded } from "./encoding.js";
import { HostError, Result } from "./values.js";

const PATIENCE = 5000;

export class Playing {
  /**
   * @param {import("./extension.js").Extension} extension
   * @param {import("./testing.js").HostOptions} options
   */
  constructor(extension, options) {
    this.extension = extension;
    this.name = options.host ?? "hilt";
    this.dialect = options.dialect ?? (this.name === "piglet" ? "jsonrpc" : "frames");
    this.options = options;
    this.framed = this.dialect === "frames";
    /** @type {import("./testing.js").Note[]} */
    this.notes = [];
    /** What was shown and is no note. @type {string[]} */
    this.shown = [];
    /** Prompts that it sent by itself. @type {string[]} */
    this.submitted = [];
    /** Open panels by id. @type {Map<string, any>} */
    this.panels = new Map();
    /** @type {string[]} */
    this.log = [];
    /** Everything that it said, parsed. @type {any[]} */
    this.said = [];
    /** What services answer: a result, an error, or a function of the params. @type {Record<string, any>} */
    this.answers = { ...options.answers };
    /** @type {Map<string | number, any>} */
    this.waiting = new Map();
    /** @type {{ fits: (message: any) => boolean, resolve: (message: any) => void }[]} */
    this.watchers = [];
    this.counted = 0;
    /** Topics that it subscribed to. @type {{ id: number, topic: string }[]} */
    this.topics = [];
    /** @type {Map<string, string[]>} */
    this.progress = new Map();
    /** What it has registered, by kind. @type {Record<string, any[]>} */
    this.registered = {};
    this.wire = new MemoryWire(this);
    this.session = extension.connect(this.wire, this.dialect);
  }

  /**
   * Publishes on a topic of the bus.
   *
   * @param {string} topic
   * @param {unknown} data
   */
  publish(topic, data) {
    for (const { id, topic: subscribed } of this.topics) {
      if (subscribed !== topic) continue;
      const params = { topic, subscriptionId: id, data };
      this.send(
        this.framed ? { type: "ext_notify", method: "eventBus/event", params } : notification("eventBus/event", params),
      );
    }
  }

  /**
   * Asks by method, in either dialect.
   *
   * @param {string} method
   * @param {Record<string, any>} params
   */
  async method(method, params) {
    const asked = this.framed ? { type: "ext_request", method, params } : { method, params };
    return bounded(this.ask(asked).answer, `${method} was not answered`);
  }

  /**
   * @param {string} method
   * @param {Record<string, any>} params
   */
  request(method, params) {
    return this.ask({ method, params }).answer;
  }

  /** @param {Record<string, any>} asked */
  ask(asked) {
    this.counted += 1;
    const id = this.framed ? `h${this.counted}` : this.counted;
    const answer = new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject }));
    answer.catch(() => undefined);
    this.send(this.framed ? { ...asked, id } : { jsonrpc: "2.0", id, ...asked });
    return { id, answer };
  }

  /** @param {Record<string, any>} message */
  send(message) {
    this.wire.listener?.line(encoded(message));
  }

  /**
   * Waits for something that it says.
   *
   * @param {(message: any) => boolean} fits
   * @returns {Promise<any>}
   */
  next(fits) {
    return bounded(new Promise((resolve) => this.watchers.push({ fits, resolve })), "what was waited for was not said");
  }

  /** @param {any} message */
  heard(message) {
    this.said.push(message);
    if (this.framed) this.heardFrame(message);
    else this.heardMessage(message);
    for (const one of this.watchers.filter(({ fits }) => fits(message))) {
      this.watchers.splice(this.watchers.indexOf(one), 1);
      one.resolve(message);
    }
  }

  /** @param {any} frame */
  heardFrame(frame) {
    switch (frame.type) {
      case "tool_result":
      case "command_response":
      case "event_intercept_response":
        return this.settle(frame.id, frame);
      case "ext_response":
        return this.settle(frame.id, frame.result, frame.error);
      case "register_tool":
      case "register_command":
        return this.record(frame.type.slice("register_".length), frame);
      case "subscribe":
        return this.record("subscribe", frame);
      case "register":
        return this.record(frame.kind, frame);
      case "host_request":
        return void this.serve(frame.id, frame.method, frame.params ?? {});
      case "call_tool":
        return void this.serve(frame.id, "host/executeTool", {
          name: frame.name,
          args: frame.args,
          callId: frame.parent_id,
        });
      case "host_notify":
        return this.told(frame.method, frame.params ?? {});
      default:
        return this.told(...numbered(frame));
    }
  }

  /** @param {any} message */
  heardMessage({ id, method, params, result, error }) {
    if (method === undefined) return this.settle(id, result, error);
    if (id !== undefined) return void this.serve(id, method, params ?? {});
    if (method.startsWith("register/"))
      return this.record(
        method
          .slice("register/".length)
          .replace(/[A-Z]/g, (/** @type {string} */ letter) => `_${letter.toLowerCase()}`),
        params,
      );
    return this.told(method, params ?? {});
  }

  /**
   * @param {string} method
   * @param {any} params
   */
  told(method, params) {
    if (method === "notify") this.notes.push({ text: params.message, level: params.level ?? "info" });
    else if (method === "clear_notes") this.notes = [];
    else if (method === "showMessage") this.shown.push(params.text);
    else if (method === "sendMessage") this.submitted.push(params.content);
    else if (method === "log")
      this.log.push(params.level === "info" ? params.message : `${params.level}: ${params.message}`);
    else if (method === "tool/progress")
      this.progress.set(params.callId, [...(this.progress.get(params.callId) ?? []), params.text]);
    else if (method === "panel/close") this.panels.delete(params.panel_id);
    else if (method === "panel/open" || method === "panel/render") this.drawn(params);
  }

  /** @param {any} look */
  drawn({ panel_id: id, title = "", lines = [], footer = "" }) {
    const panel = this.panels.get(id) ?? { id };
    this.panels.set(id, Object.assign(panel, { title, lines, footer, text: lines.join("\n") }));
    return this.panels.get(id);
  }

  /**
   * @param {string} kind
   * @param {any} members
   */
  record(kind, members) {
    (this.registered[kind] ??= []).push(members);
  }

  /**
   * @param {string | number} id
   * @param {any} result
   * @param {any} [error]
   */
  settle(id, result, error) {
    const waiting = this.waiting.get(id);
    this.waiting.delete(id);
    if (error) waiting?.reject(new HostError(error.code, error.message));
    else waiting?.resolve(result);
  }

  /**
   * @param {string | number} id
   * @param {string} method
   * @param {any} params
   */
  async serve(id, method, params) {
    let result;
    let error;
    try {
      result = await this.served(method, params);
    } catch (thrown) {
      error = {
        code: /** @type {any} */ (thrown)?.code ?? -32603,
        message: thrown instanceof Error ? thrown.message : String(thrown),
      };
    }
    if (!this.framed) return this.send({ jsonrpc: "2.0", id, ...(error ? { error } : { result }) });
    if (method !== "host/executeTool")
      return this.send({ type: "host_response", id, ...(error ? { error } : { result }) });
    const content = error ? [{ type: "text", text: error.message }] : (result.content ?? []);
    return this.send({
      type: "tool_result",
      id,
      name: params.name,
      content,
      is_error: error !== undefined || result.isError === true,
    });
  }

  /**
   * @param {string} method
   * @param {any} params
   */
  async served(method, params) {
    if (Object.hasOwn(this.answers, method)) {
      const answer = this.answers[method];
      const told = typeof answer === "function" ? await answer(params) : answer;
      if (told instanceof Error) throw told;
      return told instanceof Result ? { content: told.content, isError: told.isError } : (told ?? {});
    }
    if (method === "host/subscribe") {
      const id = this.topics.length + 1;
      this.topics.push({ id, topic: params.topic });
      return { subscriptionId: id };
    }
    if (method === "host/publish") {
      queueMicrotask(() => this.publish(params.topic, params.data));
      return {};
    }
    if (method === "host/config.get") return { values: {} };
    throw Object.assign(
      new Error(`the test host has no answer to ${method}; give one: host.answers[${JSON.stringify(method)}] = {…}`),
      { code: -32601 },
    );
  }
}

/** The extension's side of the wire. */
class MemoryWire {
  /** @param {Playing} host */
  constructor(host) {
    this.host = host;
    /** @type {import("./transport.js").Listener | undefined} */
    this.listener = undefined;
  }

  /** @param {import("./transport.js").Listener} listener */
  listen(listener) {
    this.listener = listener;
  }

  /** @param {string} line */
  write(line) {
    this.host.heard(JSON.parse(line));
  }

  /** @param {string} text */
  log(text) {
    this.host.log.push(text);
  }

  async room() {}

  async flush() {}
}

/**
 * A frame without an answer, as a method.
 *
 * @param {any} frame
 * @returns {[string, any]}
 */
function numbered({ type, id, panel, text, ...rest }) {
  switch (type) {
    case "open_panel":
      return ["panel/open", { ...panel, panel_id: panel.id }];
    case "panel_render":
    case "panel_close":
      return [type.replace("_", "/"), rest];
    case "submit":
    case "submit_slash":
      return ["sendMessage", { content: text }];
    case "tool_progress":
      return ["tool/progress", { callId: id, text }];
    default:
      return [type, rest];
  }
}

/**
 * @param {string} method
 * @param {Record<string, any>} params
 */
export function notification(method, params) {
  return { jsonrpc: "2.0", method, params };
}

/** @param {Record<string, any>} members */
export function given(members) {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}

/** @param {Record<string, any>} members */
export function snaked(members) {
  const spelt = (/** @type {string} */ word) => word.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return Object.fromEntries(Object.entries(members).map(([name, value]) => [spelt(name), value]));
}

/**
 * @template T
 * @param {Promise<T>} work
 * @param {string} failure
 * @returns {Promise<T>}
 */
export async function bounded(work, failure) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${failure} within ${PATIENCE / 1000} s`)), PATIENCE);
  });
  try {
    return /** @type {T} */ (await Promise.race([work, late]));
  } finally {
    clearTimeout(timer);
  }
}
