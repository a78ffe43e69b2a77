// The public face: an extension registers what it offers here, tells and asks the host through it, and runs.

import { mkdirSync, realpathSync } from "node:fs";
import { isatty } from "node:tty";
import { fileURLToPath } from "node:url";
import { FIRST_EVENTS } from "./events.js";
import { FEATURES } from "./features.js";
import { callTool } from "./calls.js";
import { Host } from "./host.js";
import {
  checkedEvent,
  checkedFunction,
  checkedInterception,
  checkedJson,
  checkedName,
  isPlain,
  isRaw,
  kinded,
  RegistrationError,
  Registry,
  subscription,
} from "./registry.js";
import { Schema } from "./schema.js";
import { Session } from "./session.js";
import { found, Pipes, takeStdio } from "./transport.js";

const TOOL_NAME = /^[A-Za-z0-9_-]{1,64}$/;
const COMMAND_NAME = /^[^\s/]\S{0,63}$/;
const OTHER_NAME = /^\S.{0,127}$/s;
const TOOL_OPTIONS = [
  "deferred",
  "exposure",
  "interactive",
  "namespace",
  "namespaceDescription",
  "namespaceInstructions",
  "outputSchema",
  "promptHint",
];
const LEVELS = ["info", "success", "warn", "error"];
const NOBODY = { host: { name: "", version: "", dialect: "" }, provider: "", model: "", capabilities: [] };
const NO_ARGUMENTS = { type: "object", properties: {} };

export class Extension {
  #registry;
  /** @type {Session | undefined} */
  #session;
  /** @type {((session: Session) => void)[]} */
  #early = [];

  /**
   * @param {string} name
   * @param {string | { version?: string }} [about]
   */
  constructor(name, about = {}) {
    this.name = checkedName("extension", name, OTHER_NAME, "1 to 128 characters");
    this.version = (typeof about === "string" ? about : about.version) ?? "0.1.0";
    this.#registry = new Registry(name);
    /** @type {(() => unknown)[]} */
    this.readyHandlers = [];
    /** @type {(() => unknown)[]} */
    this.stopHandlers = [];
    this.host = new Host(() => this.#running());
  }

  // What it offers

  /** @param {any} spec */
  tool(spec) {
    const { name, description = "", parameters = NO_ARGUMENTS, run, interruptible = true, ...options } = spec;
    checkedName("tool", name, TOOL_NAME, "1 to 64 of the characters A–Z, a–z, 0–9, _ and -");
    checkedFunction(`the tool ${name}: run`, run);
    const json = parameters instanceof Schema ? parameters.json : parameters;
    if (typeof json !== "object" || json === null || (json.type ?? "object") !== "object") {
      throw new RegistrationError(`the tool ${name}: parameters are an s.object({…}) or a JSON Schema of an object`);
    }
    const unknown = Object.keys(options).find((option) => !TOOL_OPTIONS.includes(option));
    if (unknown)
      throw new RegistrationError(
        `the tool ${name} has no option ${unknown}; there are ${TOOL_OPTIONS.join(", ")} and interruptible`,
      );
    const output = options.outputSchema instanceof Schema ? { outputSchema: options.outputSchema.json } : {};
    const behaviour = interruptible ? {} : { interruptBehavior: "block" };
    const members = { name, description, parameters: json, ...options, ...output, ...behaviour };
    checkedJson(`the tool ${name}`, members);
    this.#registry.tools.set(name, { members, run: run.bind(spec) });
    if (options.deferred || options.exposure === "deferred") this.#registry.use("deferred_tools", name);
    this.#announce([kinded("tool", members)]);
    return this;
  }

  /**
   * @param {string} name
   * @param {string} description
   * @param {(args: string) => unknown} run
   * @param {{ immediate?: boolean }} [options]
   */
  command(name, description, run, options = {}) {
    const plain = typeof name === "string" && name.startsWith("/") ? name.slice(1) : name;
    checkedName("command", plain, COMMAND_NAME, "1 to 64 characters and no spaces");
    const command = { name: plain, description, immediate: options.immediate ?? false };
    this.#registry.commands.set(plain, { ...command, run: checkedFunction(`the command /${plain}`, run) });
    this.#announce([kinded("command", command)]);
    return this;
  }

  /**
   * @param {string} key
   * @param {string} description
   * @param {() => unknown} run
   */
  shortcut(key, description, run) {
    checkedName("shortcut", key, /^\S{1,64}$/, "1 to 64 characters and no spaces, such as ctrl+g");
    this.#registry.shortcuts.set(key, { key, description, run: checkedFunction(`the shortcut ${key}`, run) });
    this.#registry.use("shortcuts", key);
    this.#announceLate("shortcuts", () => [kinded("shortcut", { key, description })]);
    return this;
  }

  /**
   * @param {string | readonly string[]} events
   * @param {(event: any) => unknown} handler
   * @param {{ name?: string, priority?: number }} [options]
   */
  on(events, handler, { name, priority = 0 } = {}) {
    const wanted = [events].flat().map(checkedEvent);
    for (const event of wanted) {
      this.#registry.handlers.push({
        event,
        handler: checkedFunction(`the handler of ${event}`, handler),
        name,
        priority,
      });
      this.#registry.use(isRaw(event) ? "raw_events" : FIRST_EVENTS.includes(event) ? "events" : "more_events", event);
    }
    this.#announce(
      subscription(
        wanted.filter((event) => !isRaw(event)),
        [],
      ),
      ["subscribe"],
    );
    this.#announceLate("raw_events", (greeting) => this.#registry.eventHandler(greeting));
    return this;
  }

  /**
   * @param {string} event
   * @param {(asked: any) => unknown} handler
   * @param {{ name?: string, priority?: number, required?: boolean }} [options]
   */
  intercept(event, handler, { name, priority = 0, required = false } = {}) {
    checkedInterception(event);
    checkedFunction(`the interceptor of ${event}`, handler);
    const group = name ?? (priority === 0 ? this.name : `${this.name}-${priority}`);
    const interceptor = { event, handler, name, priority, group };
    this.#registry.interceptors.push(interceptor);
    this.#registry.use(`intercept.${event}`);
    if (priority !== 0) this.#registry.use("priorities");
    if (required) this.require(`intercept.${event}`);
    if (isPlain(interceptor)) this.#announce(subscription([], [event]), ["subscribe"]);
    this.#announceLate("priorities", (greeting) =>
      this.#registry
        .groups(greeting)
        .filter((one) => one.name === group)
        .map(({ members: _, ...members }) => kinded("interceptor", members)),
    );
    return this;
  }

  /**
   * @param {string} title
   * @param {string} content
   * @param {{ order?: number, tokenHint?: number }} [options]
   */
  promptSection(title, content, { order = 0, tokenHint = 0 } = {}) {
    checkedName("prompt section", title, OTHER_NAME, "1 to 128 characters");
    const members = { title, content, order, tokenHint };
    this.#registry.sections.set(title, members);
    this.#registry.use("prompt_sections", title);
    this.#announceLate("prompt_sections", () => [kinded("prompt_section", members)]);
    return this;
  }

  /**
   * @param {(text: string) => unknown} run
   * @param {{ name?: string, priority?: number }} [options]
   */
  messageHook(run, { name = this.name, priority = 0 } = {}) {
    this.#registry.hooks.push({ name, priority, run: checkedFunction("the message hook", run) });
    this.#registry.use("message_hooks", name);
    this.#announceLate("message_hooks", () => [kinded("message_hook", { name, priority })]);
    return this;
  }

  /**
   * @param {(text: string) => unknown} run
   * @param {{ name?: string, priority?: number }} [options]
   */
  inputTransformer(run, { name = this.name, priority = 0 } = {}) {
    this.#registry.transformers.push({ name, priority, run: checkedFunction("the input transformer", run) });
    this.#registry.use("input_transformers", name);
    this.#announceLate("input_transformers", () => [kinded("input_transformer", { name, priority })]);
    return this;
  }

  /**
   * @param {(messages: any[]) => unknown} run
   * @param {{ name?: string, threshold?: number }} [options]
   */
  compactor(run, { name = this.name, threshold = 0 } = {}) {
    this.#registry.compactors.set(name, { name, threshold, run: checkedFunction("the compactor", run) });
    this.#registry.use("compactors", name);
    this.#announceLate("compactors", () => [kinded("compactor", { name, threshold })]);
    return this;
  }

  /**
   * @param {string} api
   * @param {(request: any, reply: any) => unknown} run
   * @param {{ models?: any[] }} [options]
   */
  provider(api, run, { models = [] } = {}) {
    checkedName("provider", api, OTHER_NAME, "1 to 128 characters");
    this.#registry.providers.set(api, { api, models, run: checkedFunction(`the provider of ${api}`, run) });
    this.#registry.use("providers", api);
    if (models.length) this.#registry.use("provider_models");
    this.#announceLate("providers", () => [kinded("provider", { api, models })]);
    return this;
  }

  /** @param {() => unknown} run */
  onReady(run) {
    this.readyHandlers.push(checkedFunction("onReady", run));
    return this;
  }

  /** @param {() => unknown} run */
  onStop(run) {
    this.stopHandlers.push(checkedFunction("onStop", run));
    return this;
  }

  // What the host is and has

  /** @param {string[]} features */
  uses(...features) {
    for (const feature of features) this.#registry.use(feature);
    return this;
  }

  /** @param {string[]} features */
  require(...features) {
    for (const feature of features) {
      this.#registry.use(feature);
      this.#registry.required.add(feature);
    }
    return this;
  }

  /** @param {string} feature */
  offers(feature) {
    return this.#session?.offers(feature) ?? false;
  }

  get missing() {
    return this.#session?.missing ?? [];
  }

  get hostInfo() {
    const { host, provider, model, capabilities } = this.#session?.greeting ?? NOBODY;
    return { ...host, provider, model, capabilities: [...capabilities] };
  }

  get cwd() {
    return this.#session?.greeting?.cwd ?? "";
  }

  get extensionDir() {
    return this.#session?.greeting?.extensionDir ?? "";
  }

  /** Where it may keep data. It exists. */
  get dataDir() {
    const directory = this.#session?.greeting?.dataDir ?? "";
    if (directory) mkdirSync(directory, { recursive: true });
    return directory;
  }

  /**
   * Those of its own settings that are set, as they are now; none where the host has none.
   * @param {string[]} keys
   */
  async settings(...keys) {
    const session = this.#running();
    await session.opened;
    return session.offers("services") ? this.host.config(keys) : {};
  }

  // What it tells the host

  /**
   * @param {string} text
   * @param {"info" | "success" | "warn" | "error"} [level]
   */
  notify(text, level = "info") {
    if (!LEVELS.includes(level))
      throw new TypeError(`there is no level ${JSON.stringify(level)}; there are ${LEVELS.join(", ")}`);
    this.#say((session) => session.tell("notify", { level, message: String(text) }));
  }

  clearNotes() {
    this.#sayOrDrop("clear_notes", (session) => session.tell("clear_notes", {}));
  }

  /** @param {string} text */
  show(text) {
    this.#say((session) => {
      if (session.offers("show")) session.tell("showMessage", { text: String(text) });
      else session.tell("notify", { level: "info", message: String(text) });
    });
  }

  /** @param {string} text */
  submit(text) {
    this.#sayOrThrow("submit", (session) => session.tell("sendMessage", { content: String(text) }));
  }

  /** @param {string} text */
  steer(text) {
    this.#sayOrThrow("steer", (session) => session.tell("steer", { content: String(text) }));
  }

  /** @param {string} [reason] */
  abort(reason = "") {
    this.#sayOrThrow("abort", (session) =>
      reason ? session.tell("abortWithMarker", { reason }) : session.tell("abort", {}),
    );
  }

  /** @param {string} text */
  setInput(text) {
    this.#sayOrThrow("input_text", (session) => session.tell("setInputText", { text: String(text) }));
  }

  /**
   * @param {string} key
   * @param {string} text
   * @param {"above-input" | "below-status"} [placement]
   */
  widget(key, text, placement = "above-input") {
    this.#sayOrDrop("widgets", (session) => session.tell("setWidget", { key, placement, content: String(text) }));
  }

  /**
   * @param {string} key
   * @param {string} text
   * @param {{ title?: string, anchor?: string, width?: string }} [look]
   */
  overlay(key, text, look = {}) {
    this.#sayOrThrow("overlays", (session) => session.tell("showOverlay", { key, content: String(text), ...look }));
  }

  /** @param {string} key */
  closeOverlay(key) {
    this.#sayOrThrow("overlays", (session) => session.tell("closeOverlay", { key }));
  }

  /**
   * @param {string} key
   * @param {string} text
   */
  status(key, text) {
    this.#sayOrDrop("status", (session) => session.tell("setStatus", { key, text: String(text) }));
  }

  /**
   * @param {string} text
   * @param {"debug" | "info" | "warn" | "error"} [level]
   */
  log(text, level = "info") {
    this.#say((session) => {
      if (session.dialect.name === "jsonrpc") session.tell("log", { level, message: String(text) });
      else session.log(level === "info" ? String(text) : `${level}: ${text}`);
    });
  }

  /** @param {import("./panel.js").Panel} panel */
  open(panel) {
    this.#say((session) => session.answering.openPanel(panel));
  }

  /**
   * @param {string} name
   * @param {Record<string, unknown>} [args]
   * @param {{ signal?: AbortSignal, timeout?: number }} [options]
   */
  async callTool(name, args = {}, options = {}) {
    return callTool(this.#running(), name, args, "", options);
  }

  // Running

  /**
   * Talks with the host until that ends, and then ends the process. With `main: import.meta` it does so only where that
   * module is the program itself, and not where a test imports it.
   * @param {{ dialect?: "frames" | "jsonrpc", main?: ImportMeta }} [options]
   */
  async run(options = {}) {
    if (options.main && !isProgram(options.main)) return;
    const { dialect, input, output } = found(options.dialect);
    if (input === 0 && isatty(0)) return leave(explain(this.name, this.version), 2);
    if (output === 1) takeStdio();
    delete process.env.PIGLET_FD;
    const session = this.connect(new Pipes(input, output), dialect);
    process.on("SIGTERM", () => void session.stop(0));
    process.on("SIGINT", () => undefined);
    process.on("uncaughtException", (error) => session.failed("something nobody waited for", error));
    process.exit(await session.done);
  }

  /**
   * Talks over a wire; `run` and the test host use it.
   *
   * @param {import("./session.js").Wire} wire
   * @param {"frames" | "jsonrpc"} dialect
   */
  connect(wire, dialect) {
    const session = new Session(this, this.#registry, wire, dialect);
    this.#session = session;
    session.start();
    for (const say of this.#early.splice(0)) session.whenOpen(() => say(session));
    return session;
  }

  #running() {
    if (this.#session !== undefined) return this.#session;
    throw new Error(`${this.name} does not run yet; ask the host in a handler, such as that of onReady`);
  }

  /** @param {(session: Session) => void} say */
  #say(say) {
    const session = this.#session;
    if (session === undefined) this.#early.push(say);
    else session.whenOpen(() => say(session));
  }

  /**
   * @param {string} feature
   * @param {(session: Session) => void} say
   */
  #sayOrThrow(feature, say) {
    this.#say((session) => {
      session.must(feature);
      say(session);
    });
  }

  /**
   * @param {string} feature
   * @param {(session: Session) => void} say
   */
  #sayOrDrop(feature, say) {
    this.#say((session) => {
      if (session.offers(feature)) return say(session);
      session.complain(`drop ${feature}`, `${session.hostName} does not offer ${FEATURES[feature].words}: left out`);
    });
  }

  /**
   * Tells a host of what was registered after the start. In the frames dialect these may be told before it has answered.
   *
   * @param {import("./registry.js").Registration[]} registrations
   * @param {string[]} [framedOnly] kinds that the jsonrpc dialect does not have
   */
  #announce(registrations, framedOnly = []) {
    const session = this.#session;
    if (session === undefined) return;
    const framed = session.dialect.name === "frames";
    if (!framed && session.greeting === undefined) return;
    const told = registrations.filter(({ kind }) => framed || !framedOnly.includes(kind));
    if (told.length && session.greeting) session.must("late_registration");
    for (const { kind, members } of told) session.send(session.dialect.register(kind, members));
  }

  /**
   * The same for what only some hosts know: they are told once they have said so.
   *
   * @param {string} feature
   * @param {(greeting: import("./protocol.js").Greeting) => import("./registry.js").Registration[]} made
   */
  #announceLate(feature, made) {
    const session = this.#session;
    if (session?.greeting === undefined) return;
    const told = made(session.greeting);
    if (told.length === 0) return;
    session.must(feature);
    session.must("late_registration");
    for (const { kind, members } of told) session.send(session.dialect.register(kind, members));
  }
}

/**
 * @param {string} name
 * @param {string} version
 */
function explain(name, version) {
  const file = process.argv[1] ?? "FILE";
  return (
    `${name} ${version} is an extension: a program that a coding agent starts and talks to. To try it:\n` +
    `  hilt --ext ${file}             start the agent with it\n` +
    `  hilt ext call ${file} TOOL '{}'   call one of its tools\n`
  );
}

/**
 * @param {string} words
 * @param {number} code
 */
function leave(words, code) {
  process.stderr.write(words);
  process.exit(code);
}

/**
 * Bun, Deno and Node from 24 on say it themselves; before that, the program's file is compared, links followed.
 * @param {ImportMeta} module
 */
function isProgram(module) {
  const said = /** @type {{ main?: boolean }} */ (module).main;
  if (said !== undefined) return said;
  return process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(module.url);
}
