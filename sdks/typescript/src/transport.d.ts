import type { Writable } from "node:stream";

export interface Listener {
  line(line: string): void;
  tooLong(bytes: number): void;
  ended(): void;
}

export declare const LINE_LIMIT: number;

/** Cuts bytes into lines at `\n` and nowhere else, and drops a line that is too long. */
export declare class Lines {
  constructor(take: (line: string) => void, tooLong: (bytes: number) => void);
  feed(chunk: Buffer): void;
  end(): void;
}

/** A pair of descriptors that lines are read from and written to. */
export declare class Pipes {
  constructor(input: number, output: number);
  writer: Writable | undefined;
  listen(listener: Listener): void;
  write(line: string): void;
  log(text: string): void;
  room(): Promise<void>;
  flush(): Promise<void>;
}

export declare function found(asked: string | undefined): {
  dialect: "frames" | "jsonrpc";
  input: number;
  output: number;
};
export declare function takeStdio(): void;
