import type { Greeting } from "./protocol.js";

/** Something that cannot be registered; the message says why and what would do. */
export declare class RegistrationError extends TypeError {
  constructor(message: string);
}

/** Something to be told to the host: its kind in the words of the frames dialect, its members in those of the other. */
export interface Registration {
  kind: string;
  members: Record<string, any>;
}

export interface Group {
  name: string;
  priority: number;
  events?: string[];
  members: any[];
}

export declare class Registry {
  constructor(name: string);
  name: string;
  tools: Map<string, any>;
  commands: Map<string, any>;
  shortcuts: Map<string, any>;
  sections: Map<string, any>;
  providers: Map<string, any>;
  compactors: Map<string, any>;
  handlers: any[];
  interceptors: any[];
  hooks: any[];
  transformers: any[];
  uses: Map<string, Set<string>>;
  required: Set<string>;
  use(feature: string, label?: string): void;
  missing(greeting: Greeting, features?: Iterable<string>): string[];
  early(): Registration[];
  rest(greeting: Greeting): Registration[];
  groups(greeting: Greeting): Group[];
  eventHandler(greeting: Greeting): Registration[];
}

export declare function byPriority<T extends { priority: number }>(all: T[]): T[];
export declare function isPlain(interceptor: { name?: string; priority: number; event: string }): boolean;
export declare function isRaw(event: string): boolean;
export declare function subscription(events: string[], intercept: string[]): Registration[];
export declare function kinded(kind: string, members: Record<string, any>): Registration;
export declare function checkedName(what: string, name: unknown, pattern: RegExp, expected: string): string;
export declare function checkedEvent(event: string): string;
export declare function checkedInterception(event: string): string;
export declare function checkedJson(what: string, members: Record<string, any>): void;
export declare function checkedFunction<T>(what: string, run: T): T;
