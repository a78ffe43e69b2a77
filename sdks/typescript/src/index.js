// Everything an extension needs. The test host is in testing.js, so that extensions do not load it.

export { Extension } from "./extension.js";
export { FEATURES } from "./features.js";
export { Call } from "./calls.js";
export { Intercepted } from "./interception.js";
export { Event } from "./events.js";
export { Panel } from "./panel.js";
export { RegistrationError } from "./registry.js";
export { s, Schema } from "./schema.js";
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
