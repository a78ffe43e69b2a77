import type { Session } from "./session.js";
import type { Result } from "./values.js";

/** A tool call, for the tool that is called. */
export declare class Call {
  constructor(session: Session, asked: { id: string; name: string }, signal: AbortSignal);
  readonly id: string;
  /** That of the tool. */
  readonly name: string;
  /** Is aborted when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
  get cancelled(): boolean;
  /** Shows the next piece of output. Hosts that cannot show it are not told. */
  progress(text: string): void;
  onCancel(run: () => unknown): void;
  /** Waits, and is true when the call was cancelled before that. */
  wait(seconds: number): Promise<boolean>;
  /** Calls another tool on behalf of this call. */
  callTool(
    name: string,
    args?: Record<string, unknown>,
    options?: { signal?: AbortSignal; timeout?: number },
  ): Promise<Result>;
}

/** @internal */
export declare function callTool(
  session: Session,
  name: string,
  args: Record<string, unknown>,
  parent: string,
  options: { signal?: AbortSignal; timeout?: number },
): Promise<Result>;
