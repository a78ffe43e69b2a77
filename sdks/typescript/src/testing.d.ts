import type { EventName, RawEventName } from "./events.js";
import type { Extension } from "./extension.js";
import type { Panel } from "./panel.js";
import { Playing } from "./playing.js";
import type { Result } from "./values.js";

export interface HostOptions {
  /** Which host is played; `hilt` without a word. */
  host?: "hilt" | "zot" | "piglet";
  dialect?: "frames" | "jsonrpc";
  /** What it announces, in place of what that host does. */
  capabilities?: string[];
  cwd?: string;
  dataDir?: string;
  /** What services answer: a result, an Error, or a function of the params. */
  answers?: Record<string, Answer>;
}

export type Answer = Record<string, any> | Error | Result | ((params: any) => unknown);

export interface Note {
  text: string;
  level: string;
}

/** What a command or a shortcut did. */
export interface Action {
  shown: string;
  inserted: string;
  prompt: string;
  tool: string;
  args: Record<string, any>;
  error: string;
  panel?: PanelLook;
}

export interface Verdict {
  blocked: boolean;
  reason: string;
  args?: Record<string, any>;
  text?: string;
  systemPrompt?: string;
  /** What became of a tool's result. */
  result?: Result;
}

/** What a provider answered. */
export interface StreamAnswer {
  text: string;
  thinking: string;
  /** The tools that it calls. */
  calls: { name: string; args: any }[];
  /** The whole, as the host gets it. */
  message: any;
}

export interface PanelLook {
  id: string;
  title: string;
  lines: string[];
  footer: string;
  /** Its lines as one text. */
  text: string;
}

/** Starts the extension against a host in memory, and waits until it is ready. */
export declare function testHost(extension: Extension, options?: HostOptions): Promise<TestHost>;

/** A host in memory. */
export declare class TestHost extends Playing {
  get missing(): string[];
  /** Calls a tool as a model would. */
  call(name: string, args?: Record<string, unknown>, options?: { signal?: AbortSignal }): Promise<Result>;
  /** Runs a command: `/hi Ada`. */
  run(line: string): Promise<Action>;
  /** Presses a key that is registered. */
  press(key: string): Promise<Action>;
  /** Asks interceptors about a tool call. */
  intercept(tool: string, args?: Record<string, unknown>, more?: { origin?: string }): Promise<Verdict>;
  interceptTurn(step?: number): Promise<Verdict>;
  interceptMessage(text: string): Promise<Verdict>;
  interceptPrompt(systemPrompt: string): Promise<Verdict>;
  interceptResult(tool: string, result: string | Result): Promise<Verdict>;
  /** Tells of an event, and resolves when the handlers are done. */
  emit(event: EventName | RawEventName, members?: Record<string, any>): Promise<void>;
  /** Presses a key in a panel: a name such as `down`, or one character. */
  key(panel: Panel | { id: string } | string, key: string): Promise<void>;
  resize(panel: Panel | { id: string } | string, width: number, height: number): Promise<void>;
  closePanel(panel: Panel | { id: string } | string): Promise<void>;
  /** What message hooks add to what the user says. */
  hook(message: string): Promise<string>;
  /** What input transformers make of what the user types; null when it was dealt with. */
  transform(input: string): Promise<string | null>;
  compact(messages: any[]): Promise<any[]>;
  /** Asks a provider: the first, and its first model, if none is named. */
  stream(
    prompt: string | any[],
    more?: { api?: string; model?: string; system?: string; tools?: any[]; options?: any },
  ): Promise<StreamAnswer>;
  /** Ends it as a host would, and gives its exit code. */
  close(): Promise<number>;
  /** @internal */
  open(): Promise<void>;
}
