export { Extension } from "./extension.js";
export type {
  CommandAnswer,
  HostInfo,
  InterceptAnswers,
  Interceptions,
  Level,
  LogLevel,
  Placement,
  ResultInterceptAnswer,
  RunOptions,
  ToolAnswer,
  ToolSpec,
} from "./extension.js";
export { FEATURES } from "./features.js";
export type { Feature } from "./features.js";
export { Call } from "./calls.js";
export { Intercepted } from "./interception.js";
export { Event } from "./events.js";
export type { EventName, RawEventName } from "./events.js";
export type { Host, RequestOptions, Subscription } from "./host.js";
export { Panel } from "./panel.js";
export type { Model, Reply, Request } from "./provider.js";
export { RegistrationError } from "./registry.js";
export { s, Schema } from "./schema.js";
export type { Infer, JsonSchema } from "./schema.js";
export {
  Block,
  Handled,
  HostError,
  Image,
  Insert,
  NotOffered,
  Prompt,
  Replace,
  Result,
  Rewrite,
  ToolError,
  ToolPrompt,
} from "./values.js";
export type { ContentBlock, ImageBlock, ResultFields, TextBlock } from "./values.js";
