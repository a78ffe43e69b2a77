import type { Event, EventName, RawEventName } from "./events.js";
import type { Feature } from "./features.js";
import type { Call } from "./calls.js";
import type { Host } from "./host.js";
import type { Panel } from "./panel.js";
import type { Intercepted } from "./interception.js";
import type { Model, Reply, Request } from "./provider.js";
import type { Infer, JsonSchema, Schema } from "./schema.js";
import type { Session, Wire } from "./session.js";
import type { Block, Handled, Image, Insert, Prompt, Replace, Result, Rewrite, ToolPrompt } from "./values.js";

export type Level = "info" | "success" | "warn" | "error";
export type LogLevel = "debug" | "info" | "warn" | "error";
export type Placement = "above-input" | "below-status";

export interface HostInfo {
  /** `hilt`, `zot` or `piglet`; empty before the host has said who it is. */
  name: string;
  version: string;
  dialect: string;
  /** What it announced. */
  capabilities: string[];
  /** Those at the start of the host, where it says. */
  provider: string;
  model: string;
}

type MaybePromise<T> = T | Promise<T>;

/** What a tool may return: a text, a result, a picture, several of them, or anything that JSON can hold. */
export type ToolAnswer =
  string | Result | Image | readonly (string | Image | Result)[] | object | number | boolean | null | undefined | void;
/** What a command or a shortcut may return; a text is shown. */
export type CommandAnswer = string | Insert | Prompt | ToolPrompt | Panel | null | undefined | void;
export type ResultInterceptAnswer = string | Result | null | undefined | void;

/** What interceptors may return, by event. Nothing lets it be. */
export interface InterceptAnswers {
  tool_call: Block | Rewrite | null | undefined | void;
  turn_start: Block | null | undefined | void;
  assistant_message: Block | Replace | string | null | undefined | void;
  before_agent_start: string | Block | null | undefined | void;
  tool_result: ResultInterceptAnswer;
}
export type Interceptions = keyof InterceptAnswers;

type Arguments<P> = P extends Schema<any, any> ? Infer<P> : unknown extends P ? any : P extends undefined ? {} : any;

export interface ToolSpec<P extends Schema<any, any> | JsonSchema | undefined = undefined> {
  /** 1 to 64 of the characters A–Z, a–z, 0–9, `_` and `-`. */
  name: string;
  description?: string;
  /** An `s.object({…})`, or a JSON Schema of an object. Without it there are no arguments. */
  parameters?: P;
  run(args: Arguments<P>, call: Call): MaybePromise<ToolAnswer>;
  /** The model is told its name and one line, and gets the rest when it asks for it. */
  deferred?: boolean;
  exposure?: "direct" | "deferred" | "codemode" | "model-only";
  /** It waits for a person. */
  interactive?: boolean;
  namespace?: string;
  namespaceDescription?: string;
  namespaceInstructions?: string;
  outputSchema?: Schema<any, any> | JsonSchema;
  /** A line about it in the system prompt, where the host has a place for it. */
  promptHint?: string;
  /** False: it goes on when the turn is stopped, and is not told, where the host has that. */
  interruptible?: boolean;
}

export interface RunOptions {
  /** On stdin and stdout. Without it the host decides: JSON-RPC on descriptors 3 and 4, or frames. */
  dialect?: "frames" | "jsonrpc";
  /** `import.meta`: it runs only where that module is the program itself, and not where a test imports it. */
  main?: ImportMeta;
}

/** An extension: what it offers, what it tells the host, and how it runs. */
export declare class Extension {
  constructor(name: string, about?: string | { version?: string });
  readonly name: string;
  readonly version: string;
  /** What the host can be asked for. */
  readonly host: Host;

  tool<const P extends Schema<any, any> | JsonSchema | undefined = undefined>(spec: ToolSpec<P>): this;
  command(
    name: string,
    description: string,
    run: (args: string) => MaybePromise<CommandAnswer>,
    options?: { immediate?: boolean },
  ): this;
  shortcut(key: string, description: string, run: () => MaybePromise<CommandAnswer>): this;
  /**
   * Events are handled one after the other. Names that begin with `Event` are those of the jsonrpc dialect, as they
   * are, and `*` is all of them. What a handler returns does not count.
   */
  on(
    events: EventName | RawEventName | readonly (EventName | RawEventName)[],
    handler: (event: Event) => unknown,
    options?: { name?: string; priority?: number },
  ): this;
  /** An interceptor that throws refuses. `required`: without it the extension does not start. */
  intercept<Name extends Interceptions>(
    event: Name,
    handler: (asked: Intercepted) => MaybePromise<InterceptAnswers[Name]>,
    options?: { name?: string; priority?: number; required?: boolean },
  ): this;
  promptSection(title: string, content: string, options?: { order?: number; tokenHint?: number }): this;
  messageHook(
    run: (text: string) => MaybePromise<string | null | undefined | void>,
    options?: { name?: string; priority?: number },
  ): this;
  inputTransformer(
    run: (text: string) => MaybePromise<string | Handled | null | undefined | void>,
    options?: { name?: string; priority?: number },
  ): this;
  compactor(run: (messages: any[]) => MaybePromise<any[]>, options?: { name?: string; threshold?: number }): this;
  provider(api: string, run: (request: Request, reply: Reply) => unknown, options?: { models?: Model[] }): this;
  /** After the handshake. */
  onReady(run: () => unknown): this;
  /** Before the end; there is a moment for it. */
  onStop(run: () => unknown): this;

  /** Declares what is used beyond what is registered, so that it is told when the host lacks it. */
  uses(...features: Feature[]): this;
  /** The same, and without it the extension does not start. */
  require(...features: Feature[]): this;
  offers(feature: Feature): boolean;
  /** What is used and the present host does not offer, in words. */
  get missing(): string[];
  get hostInfo(): HostInfo;
  /** Where the agent works. */
  get cwd(): string;
  /** Where the extension's files are, where the host says. */
  get extensionDir(): string;
  /** Where it may keep data; it exists. Empty where the host does not say. */
  get dataDir(): string;
  /** Those of its own settings that are set; none where the host has none. */
  settings(...keys: string[]): Promise<Record<string, any>>;

  notify(text: string, level?: Level): void;
  clearNotes(): void;
  /** Shows a text that never goes to the model. */
  show(text: string): void;
  /** Sends a prompt to the model, or runs a command that begins with `/`. */
  submit(text: string): void;
  /** Says something to the model while it is at work. */
  steer(text: string): void;
  abort(reason?: string): void;
  /** Puts text into the user's input. */
  setInput(text: string): void;
  /** A few lines beside the input; an empty text removes them. */
  widget(key: string, text: string, placement?: Placement): void;
  overlay(key: string, text: string, look?: { title?: string; anchor?: string; width?: string }): void;
  closeOverlay(key: string): void;
  status(key: string, text: string): void;
  log(text: string, level?: LogLevel): void;
  open(panel: Panel): void;
  /** Calls a tool of the host's or of another extension. Within a tool use `call.callTool`. */
  callTool(
    name: string,
    args?: Record<string, unknown>,
    options?: { signal?: AbortSignal; timeout?: number },
  ): Promise<Result>;

  /** Talks with the host until that ends, and then ends the process. */
  run(options?: RunOptions): Promise<void>;

  /** @internal */
  readyHandlers: (() => unknown)[];
  /** @internal */
  stopHandlers: (() => unknown)[];
  /** @internal */
  connect(wire: Wire, dialect: "frames" | "jsonrpc"): Session;
}
