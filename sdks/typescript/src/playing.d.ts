import type { Extension } from "./extension.js";
import type { Session } from "./session.js";
import type { Answer, HostOptions, Note, PanelLook } from "./testing.js";
import type { Listener } from "./transport.js";

/** The host's half of the wire in memory. */
export declare class Playing {
  constructor(extension: Extension, options: HostOptions);
  readonly extension: Extension;
  notes: Note[];
  /** What was shown and is no note. */
  shown: string[];
  /** Prompts that it sent by itself. */
  submitted: string[];
  /** Open panels by id. */
  panels: Map<string, PanelLook>;
  log: string[];
  /** Everything that it said, parsed. */
  said: any[];
  answers: Record<string, Answer>;
  /** What it has registered, by kind. */
  registered: Record<string, any[]>;
  /** Publishes on a topic of the bus. */
  publish(topic: string, data: unknown): void;
  /** Waits for something that it says. */
  next(fits: (message: any) => boolean): Promise<any>;
  /** Sends something as it is. */
  send(message: Record<string, any>): void;
  /** Asks by method, in either dialect. */
  method(method: string, params: Record<string, any>): Promise<any>;
  /** @internal */
  name: "hilt" | "zot" | "piglet";
  /** @internal */
  dialect: "frames" | "jsonrpc";
  /** @internal */
  framed: boolean;
  /** @internal */
  options: HostOptions;
  /** @internal */
  counted: number;
  /** @internal */
  progress: Map<string, string[]>;
  /** @internal */
  session: Session;
  /** @internal */
  wire: { listener: Listener | undefined };
  /** @internal */
  ask(asked: Record<string, any>): { id: string | number; answer: Promise<any> };
  /** @internal */
  request(method: string, params: Record<string, any>): Promise<any>;
  /** @internal */
  heard(message: any): void;
  /** @internal */
  drawn(look: any): PanelLook;
}

export declare function notification(method: string, params: Record<string, any>): Record<string, any>;
export declare function given(members: Record<string, any>): Record<string, any>;
export declare function snaked(members: Record<string, any>): Record<string, any>;
export declare function bounded<T>(work: Promise<T>, failure: string): Promise<T>;
