// One connection with a host: the handshake, what is asked and answered in both directions, and the end. What the
// extension offers is in the registry, how its handlers are run is in handling.js.

import { FEATURES, offered } from "./features.js";
import { Answering } from "./handling.js";
import { encoded } from "./encoding.js";
import { FAILED, frames, jsonrpc } from "./protocol.js";
import { HostError, NotOffered, wordsOf } from "./values.js";

const HELD_LIMIT = 1000;
const LAST_MOMENT = 1000;
const HOST_TIMEOUT = 310_000;
/** Requests that wait for a person, or for the model. */
const PATIENT = new Set(["host/showPicker", "host/askUser", "host/waitForIdle"]);

/** What services belong to, when it is not all of them.
 * @type {Record<string, string>} */
const NEEDED = { "host/executeTool": "call_tool", "host/publish": "bus", "host/subscribe": "bus" };

export class Session {
  /**
   * @param {import("./extension.js").Extension} extension
   * @param {import("./registry.js").Registry} registry
   * @param {import("./session.js").Wire} wire
   * @param {"frames" | "jsonrpc"} dialect
   */
  constructor(extension, registry, wire, dialect) {
    this.extension = extension;
    this.registry = registry;
    this.wire = wire;
    this.dialect = dialect === "frames" ? frames : jsonrpc;
    /** @type {import("./protocol.js").Greeting | undefined} */
    this.greeting = undefined;
    /** @type {string[]} */
    this.missing = [];
    /** @type {Map<number, { resolve: (value: any) => void, reject: (error: Error) => void }>} */
    this.pending = new Map();
    this.asked = 0;
    /** What is being worked on, by the id of the question. @type {Map<string | number, AbortController>} */
    this.running = new Map();
    /** @type {Set<Promise<void>>} */
    this.busy = new Set();
    /** What was said too early. @type {(() => void)[]} */
    this.held = [];
    this.stopping = false;
    this.complained = new Set();
    /** @type {import("./handling.js").Answering} */
    this.answering = new Answering(this);
    this.opened = new Promise((resolve, reject) => {
      this.settle = { resolve, reject };
    });
    this.opened.catch(() => undefined);
    /** Its exit code, once all is over. @type {Promise<number>} */
    this.done = new Promise((resolve) => {
      this.finish = resolve;
    });
  }

  start() {
    this.wire.listen({
      line: (line) => this.hear(line),
      tooLong: () => this.complain("long", "a line of the host is too long, and was left out"),
      ended: () => void this.stop(0),
    });
    const hello = this.dialect.hello(this.extension.name, this.extension.version);
    if (hello === undefined) return;
    this.send(hello);
    for (const { kind, members } of this.registry.early()) this.send(this.dialect.register(kind, members));
  }

  /** @param {string} line */
  hear(line) {
    if (line.trim() === "") return;
    let message;
    try {
      message = JSON.parse(line);
    } catch {
      return this.complain("json", "a line of the host is no JSON, and was left out");
    }
    if (typeof message !== "object" || message === null || Array.isArray(message)) return;
    this.take(this.dialect.read(message));
  }

  /** @param {import("./protocol.js").Incoming} incoming */
  take(incoming) {
    switch (incoming.kind) {
      case "greeting":
        return this.open(incoming);
      case "question":
        return this.work(incoming);
      case "response":
        return this.settleRequest(incoming);
      case "notice":
        return this.notice(incoming);
      default:
        return undefined;
    }
  }

  /** @param {import("./protocol.js").Incoming} incoming */
  open(incoming) {
    if (this.greeting !== undefined) return;
    const greeting = this.dialect.greeting(incoming);
    this.greeting = greeting;
    const host = this.hostName;
    const lacking = this.registry.missing(greeting, this.registry.required);
    const { name, version } = this.extension;
    if (lacking.length) {
      return this.refuseToStart(incoming, `${name}: ${host} does not offer what it needs: ${lacking.join(", ")}`);
    }
    for (const { kind, members } of this.registry.rest(greeting)) this.send(this.dialect.register(kind, members));
    this.send(incoming.id === undefined ? { type: "ready" } : this.dialect.answer(incoming, { name, version }));
    this.missing = this.registry.missing(greeting);
    for (const words of this.missing) this.log(`${name}: ${host} does not offer ${words}`);
    if (this.missing.length)
      this.tell("notify", { level: "warn", message: `${name}: ${host} does not offer: ${this.missing.join(", ")}` });
    for (const say of this.held.splice(0)) void this.guarded("what was said before the host was there", say);
    this.settle?.resolve(undefined);
    for (const handler of this.extension.readyHandlers) void this.guarded("onReady", handler);
  }

  /**
   * @param {import("./protocol.js").Incoming} incoming
   * @param {string} reason
   */
  refuseToStart(incoming, reason) {
    this.log(reason);
    this.send(
      incoming.id === undefined
        ? this.dialect.tell("notify", { level: "error", message: reason })
        : this.dialect.refuse(incoming, FAILED, reason),
    );
    this.held = [];
    void this.stop(1);
  }

  /** @param {import("./protocol.js").Incoming} incoming */
  notice({ method, params }) {
    if (method === "shutdown") {
      if (this.dialect === frames) this.send({ type: "shutdown_ack" });
      return void this.stop(0);
    }
    if (method === "$/cancelRequest") return this.running.get(params.id)?.abort();
    return this.answering.notice(method, params);
  }

  /** @param {import("./protocol.js").Incoming} asked */
  work(asked) {
    if (asked.method === "shutdown") {
      this.send(this.dialect.answer(asked, null));
      return void this.stop(0);
    }
    const control = new AbortController();
    const id = asked.id ?? "";
    this.running.set(id, control);
    const task = this.answering.answer(asked, control.signal).then((message) => {
      if (this.running.get(id) === control) this.running.delete(id);
      this.busy.delete(task);
      this.send(message);
    });
    this.busy.add(task);
  }

  /** @param {import("./protocol.js").Incoming} incoming */
  settleRequest({ id, result, fault }) {
    const number = this.dialect.numberOf(id);
    const waiting = this.pending.get(number);
    this.pending.delete(number);
    if (waiting === undefined) return;
    const message = typeof fault === "object" ? String(fault?.message ?? "") : String(fault);
    // The reference host of the jsonrpc dialect answers so where it has done what it was asked.
    if (fault === undefined || message.endsWith("%!w(<nil>)")) waiting.resolve(result ?? {});
    else waiting.reject(new HostError(Number(fault?.code ?? FAILED), message));
  }

  /**
   * @param {string} method
   * @param {Record<string, any>} params
   * @param {{ signal?: AbortSignal, timeout?: number }} [options] the timeout in milliseconds
   * @returns {Promise<any>}
   */
  async request(method, params, options = {}) {
    await this.opened;
    this.must(NEEDED[method] ?? "services");
    options.signal?.throwIfAborted();
    if (this.stopping) throw new HostError(FAILED, `${method}: the host has gone`);
    this.asked += 1;
    const number = this.asked;
    this.send(this.dialect.ask(number, method, params));
    const limit = options.timeout ?? (PATIENT.has(method) ? 0 : HOST_TIMEOUT);
    return new Promise((resolve, reject) => {
      const giveUp = (/** @type {Error} */ reason) => {
        this.send(this.dialect.takeBack(number, method));
        waiting.reject(reason);
      };
      const late = () => giveUp(new HostError(FAILED, `${method}: no answer within ${limit / 1000} s`));
      const aborted = () => giveUp(options.signal?.reason);
      const timer = limit ? setTimeout(late, limit) : undefined;
      const settled = () => {
        clearTimeout(timer);
        options.signal?.removeEventListener("abort", aborted);
        this.pending.delete(number);
      };
      const waiting = {
        /** @param {any} value */
        resolve: (value) => (settled(), resolve(value)),
        /** @param {Error} error */
        reject: (error) => (settled(), reject(error)),
      };
      this.pending.set(number, waiting);
      options.signal?.addEventListener("abort", aborted, { once: true });
    });
  }

  /**
   * Says something that has no answer, once there is somebody to hear it.
   *
   * @param {string} method
   * @param {Record<string, any>} params
   */
  tell(method, params) {
    const message = this.dialect.tell(method, params);
    encoded(message);
    this.whenOpen(() => this.send(message));
  }

  /** @param {() => void} say */
  whenOpen(say) {
    if (this.greeting !== undefined) say();
    else if (this.held.length < HELD_LIMIT) this.held.push(say);
    else throw new RangeError(`more than ${HELD_LIMIT} things were said before the host was there`);
  }

  /** @param {Record<string, any>} message */
  send(message) {
    this.wire.write(encoded(message));
  }

  /** @param {string} feature */
  offers(feature) {
    return this.greeting !== undefined && offered(feature, this.greeting);
  }

  get hostName() {
    const { name = "the host", version = "" } = this.greeting?.host ?? {};
    return `${name} ${version}`.trimEnd();
  }

  /** @param {string} feature */
  must(feature) {
    if (this.offers(feature)) return;
    throw new NotOffered(`${this.hostName} does not offer ${FEATURES[feature].words}`);
  }

  /** @param {string} text */
  log(text) {
    this.wire.log(text);
  }

  /**
   * Once for each kind.
   * @param {string} kind
   * @param {string} text
   */
  complain(kind, text) {
    if (this.complained.has(kind)) return;
    this.complained.add(kind);
    this.log(`${this.extension.name}: ${text}`);
  }

  /**
   * Runs something of the author's that nobody waits for an answer of.
   *
   * @param {string} what
   * @param {() => unknown} run
   */
  async guarded(what, run) {
    try {
      await run();
    } catch (error) {
      this.failed(what, error);
    }
  }

  /**
   * @param {string} what
   * @param {unknown} error
   */
  failed(what, error) {
    const trace = error instanceof Error ? (error.stack ?? wordsOf(error)) : wordsOf(error);
    this.log(`${this.extension.name}: ${what} failed: ${trace}`);
  }

  /**
   * Ends all of it: what runs is told and has a moment.
   * @param {number} code
   */
  async stop(code) {
    if (this.stopping) return;
    this.stopping = true;
    this.settle?.reject(new HostError(FAILED, "the host has gone before it was ready"));
    for (const control of this.running.values()) control.abort();
    for (const waiting of [...this.pending.values()]) waiting.reject(new HostError(FAILED, "the host has gone"));
    const leaving = [...this.extension.stopHandlers].map((handler) => this.guarded("onStop", handler));
    await within(LAST_MOMENT, Promise.allSettled([...leaving, ...this.busy]));
    await within(LAST_MOMENT, this.wire.flush());
    this.finish?.(code);
  }
}

/**
 * @param {number} milliseconds
 * @param {Promise<unknown>} work
 */
async function within(milliseconds, work) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  await Promise.race([work, new Promise((resolve) => (timer = setTimeout(resolve, milliseconds)))]);
  clearTimeout(timer);
}
