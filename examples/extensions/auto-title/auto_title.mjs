// Gives a session a title after its first answer, by asking a model for one.
import { Extension } from "./hilt-sdk/src/index.js";

export const ext = new Extension("auto-title", "1.0.0");

let first = "";
let done = false;

ext.on("user_prompt_submit", (event) => {
  first ||= event.text;
});

ext.on("turn_end", async (event) => {
  if (done || event.stop !== "end" || !first) return;
  done = true; // also when it fails: a title is not worth asking again and again
  if (await ext.host.sessionTitle()) return;
  const system = "Answer with a title of at most six words for a conversation that begins like this, and nothing else.";
  const { text } = await ext.host.chat(first, { system, model: "small", maxTokens: 30 });
  const title = text.split("\n")[0].replace(/^["'\s]+|["'.\s]+$/g, "").slice(0, 80);
  if (title) await ext.host.setSessionTitle(title);
});

await ext.run({ main: import.meta });
