import type { Event } from "./events.js";
import type { Panel } from "./panel.js";
import type { Incoming } from "./protocol.js";
import type { Session } from "./session.js";

/** @internal */
export type Method = (params: any, signal: AbortSignal, asked: Incoming) => Promise<any>;

/** @internal */
export declare class Answering {
  constructor(session: Session);
  panels: Map<string, Panel>;
  events: Promise<unknown>;
  answer(asked: Incoming, signal: AbortSignal): Promise<Record<string, any>>;
  notice(method: string, params: any): void;
  openPanel(panel: Panel): void;
  tellHandlers(events: Event[], errors: unknown[], actions?: unknown[]): Promise<void>;
}
