import type { ContentBlock } from "./values.js";

/** The events, by the names of the frames dialect. */
export type EventName =
  | "session_start"
  | "session_end"
  | "user_prompt_submit"
  | "turn_start"
  | "assistant_message"
  | "tool_call"
  | "turn_end"
  | "tool_confirmation_requested"
  | "permission_decision"
  | "tool_result"
  | "pre_compact"
  | "post_compact"
  | "subagent_start"
  | "subagent_stop";

/** Those of the jsonrpc dialect; `*` is all of them. */
export type RawEventName = `Event${string}` | "*";

/** Something that happened. Which members are there depends on the event. */
export declare class Event {
  constructor(name: string, members: Record<string, any>);
  readonly name: string;
  readonly text?: string;
  readonly step?: number;
  readonly stop?: "end" | "tool_use" | "length" | "error" | "aborted";
  readonly error?: string;
  readonly reason?: string;
  readonly status?: string;
  readonly toolId?: string;
  readonly toolName?: string;
  readonly toolArgs?: Record<string, any>;
  readonly toolArgsRaw?: string;
  readonly toolPreview?: string;
  readonly result?: { content: ContentBlock[]; isError?: boolean; truncated?: boolean };
  readonly executed?: boolean;
  readonly queued?: boolean;
  readonly imageCount?: number;
  readonly decision?: string;
  readonly source?: string;
  readonly stage?: string;
  readonly compactionId?: string;
  readonly messageCount?: number;
  readonly tokenEstimate?: number;
  readonly agentId?: string;
  readonly agentRunId?: string;
  readonly sessionId?: string;
  readonly cwd?: string;
  readonly sequence?: number;
  /** Of an event whose name begins with `Event`: everything there is, as the host told it. */
  readonly data?: Record<string, any>;
}

/** @internal */
export declare const FIRST_EVENTS: string[];
/** @internal */
export declare const MORE_EVENTS: string[];
/** @internal */
export declare const INTERCEPTED: string[];
/** @internal */
export declare const MADE_FROM: Readonly<Record<string, readonly string[]>>;
/** @internal */
export declare function framedEvent(frame: Record<string, any>): Event;
/** @internal */
export declare function rawEvent(type: string, data: unknown): Event;
/** @internal */
export declare class Unifier {
  step: number;
  events(type: string, data: Record<string, any>): Event[];
}
