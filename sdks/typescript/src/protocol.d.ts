/** What a host says of itself at the beginning. */
export interface Greeting {
  host: { name: string; version: string; dialect: "frames" | "jsonrpc" };
  capabilities: Set<string>;
  cwd: string;
  dataDir: string;
  extensionDir: string;
  provider: string;
  model: string;
}

/** One line of the host's. */
export interface Incoming {
  kind: "greeting" | "question" | "response" | "notice" | "unknown";
  /** What it is in the words of the jsonrpc dialect. */
  method: string;
  /** Which frame it was. */
  frame?: string;
  id?: string | number;
  params: any;
  result?: any;
  fault?: any;
}

/** One of the two ways to talk with a host. */
export interface Dialect {
  name: "frames" | "jsonrpc";
  read(message: Record<string, any>): Incoming;
  greeting(incoming: Incoming): Greeting;
  hello(name: string, version: string): Record<string, any> | undefined;
  register(kind: string, members: Record<string, any>): Record<string, any>;
  answer(asked: Incoming, value: any): Record<string, any>;
  refuse(asked: Incoming, code: number, message: string): Record<string, any>;
  tell(method: string, params: Record<string, any>): Record<string, any>;
  ask(number: number, method: string, params: Record<string, any>): Record<string, any>;
  takeBack(number: number, method: string): Record<string, any>;
  numberOf(id: string | number | undefined): number;
}

export declare const UNKNOWN_METHOD: number;
export declare const BAD_PARAMS: number;
export declare const FAILED: number;
export declare const frames: Dialect;
export declare const jsonrpc: Dialect;
export declare function present(members: Record<string, any>): Record<string, any>;
export declare function given(members: Record<string, any>): Record<string, any>;
export declare function cameled(word: string): string;
export declare function isObject(value: unknown): value is Record<string, any>;
