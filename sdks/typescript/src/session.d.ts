import type { Extension } from "./extension.js";
import type { Answering } from "./handling.js";
import type { Dialect, Greeting } from "./protocol.js";
import type { Registry } from "./registry.js";
import type { Listener } from "./transport.js";

/** What lines are read from and written to. */
export interface Wire {
  listen(listener: Listener): void;
  write(line: string): void;
  log(text: string): void;
  room(): Promise<void>;
  flush(): Promise<void>;
}

/** One connection with a host. */
export declare class Session {
  constructor(extension: Extension, registry: Registry, wire: Wire, dialect: "frames" | "jsonrpc");
  extension: Extension;
  registry: Registry;
  wire: Wire;
  dialect: Dialect;
  greeting: Greeting | undefined;
  missing: string[];
  /** Its name and version. */
  get hostName(): string;
  answering: Answering;
  opened: Promise<unknown>;
  done: Promise<number>;
  start(): void;
  request(
    method: string,
    params: Record<string, any>,
    options?: { signal?: AbortSignal; timeout?: number },
  ): Promise<any>;
  tell(method: string, params: Record<string, any>): void;
  whenOpen(say: () => void): void;
  send(message: Record<string, any>): void;
  offers(feature: string): boolean;
  must(feature: string): void;
  log(text: string): void;
  complain(kind: string, text: string): void;
  guarded(what: string, run: () => unknown): Promise<void>;
  failed(what: string, error: unknown): void;
  stop(code: number): Promise<void>;
}
