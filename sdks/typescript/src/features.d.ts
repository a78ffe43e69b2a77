import type { Greeting } from "./protocol.js";

/** Something that an extension may use and a host may lack. */
export interface FeatureRow {
  words: string;
  frames: string;
  jsonrpc: string;
}

export type Feature =
  | "tools"
  | "commands"
  | "events"
  | "more_events"
  | "raw_events"
  | "intercept.tool_call"
  | "intercept.turn_start"
  | "intercept.assistant_message"
  | "intercept.before_agent_start"
  | "intercept.tool_result"
  | "priorities"
  | "notes"
  | "clear_notes"
  | "panels"
  | "open_panel"
  | "submit"
  | "tool_prompt"
  | "progress"
  | "cancel"
  | "call_tool"
  | "structured_content"
  | "deferred_tools"
  | "activate_tools"
  | "late_registration"
  | "prompt_sections"
  | "shortcuts"
  | "message_hooks"
  | "input_transformers"
  | "compactors"
  | "providers"
  | "provider_models"
  | "services"
  | "bus"
  | "unsubscribe"
  | "show"
  | "widgets"
  | "overlays"
  | "status"
  | "input_text"
  | "steer"
  | "abort";

/** How each is known: the same table as spec/features.json. */
export declare const FEATURES: Readonly<Record<string, FeatureRow>>;

/** @internal */
export declare function offered(feature: string, greeting: Greeting): boolean;
