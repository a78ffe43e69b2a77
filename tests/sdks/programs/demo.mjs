// Everything that an extension can do, once: the same program as demo.py and demo.go, for the table of all SDKs.
import { execSync } from "node:child_process";
import { appendFileSync } from "node:fs";
import { basename, join } from "node:path";
import {
  Block,
  Extension,
  Handled,
  Image,
  Insert,
  Panel,
  Prompt,
  Replace,
  Result,
  Rewrite,
  s,
  ToolError,
  ToolPrompt,
} from "./hilt-sdk/src/index.js";

export const ext = new Extension("demo", "1.0.0");
const heard = [];
let closed = false;

// Tools

ext.tool({
  name: "echo",
  description: "Say it again.",
  parameters: s.object({ text: s.string("what to say"), times: s.integer("how often").default(1) }),
  run({ text, times }, call) {
    for (let number = 1; number <= times; number += 1) call.progress(`${number}\n`);
    return Array(times).fill(text).join(" ");
  },
});
ext.tool({
  name: "slow",
  description: "Wait until it is cancelled.",
  async run(_, call) {
    call.onCancel(() => ext.notify("slow was cancelled"));
    call.progress("waiting\n");
    return (await call.wait(30)) ? "stopped" : "waited";
  },
});
ext.tool({
  name: "picture",
  description: "Show a picture.",
  run: () => new Image(Buffer.from("\x89PNG\r\n\x1a\n", "latin1")),
});
ext.tool({
  name: "told",
  description: "Fail as one knows how to.",
  run() {
    throw new ToolError("no such city", { code: "NO_CITY", hint: "try Rome" });
  },
});
ext.tool({
  name: "broken",
  description: "Fail as nobody expects.",
  run() {
    throw new Error("boom");
  },
});
ext.tool({ name: "data", description: "Give data.", run: () => ({ sum: 3 }) });
ext.tool({ name: "nan", description: "Give what JSON cannot hold.", run: () => ({ x: NaN }) });
ext.tool({ name: "nothing", description: "Give nothing.", run: () => undefined });
ext.tool({
  name: "relay",
  description: "Read a file by another tool.",
  parameters: s.object({ path: s.string() }),
  run: async ({ path }, call) => `read: ${(await call.callTool("read", { path })).text.trim()}`,
});
ext.tool({
  name: "chatter",
  description: "Print to standard output, and have a program do so.",
  run() {
    console.log("printed by demo");
    process.stdout.write(execSync("echo echoed by demo"));
    return "quiet";
  },
});

// Commands

class Counter extends Panel {
  count = 0;
  typed = "";
  constructor() {
    super({ title: "Counter", footer: "q closes" });
  }
  render(width, height) {
    return [`count ${this.count}`, `typed ${this.typed}`, `${width} x ${height}`];
  }
  onKey(key, text) {
    if (key === "up") this.count += 1;
    else if (text === "q") this.close();
    else this.typed += text;
  }
  onClose() {
    ext.notify("the counter was closed");
  }
}

ext.command("show", "show words", (args) => `shown ${args}`);
ext.command("nothing", "do nothing", () => undefined);
ext.command("insert", "insert words", () => new Insert("inserted words"));
ext.command("prompt", "prompt the model", () => new Prompt("prompted words"));
ext.command("explain", "have a file explained", (args) => new ToolPrompt("read", { path: args }, "Explain this."));
ext.command("count", "open a panel", () => new Counter());
ext.command("fail", "fail", () => {
  throw new ToolError("it broke");
});
ext.command("say", "say things to the user", () => {
  ext.notify("a note", "success");
  ext.show("a text");
  ext.setInput("an input");
  ext.widget("w", "a widget");
  ext.overlay("o", "an overlay", { title: "Look" });
  ext.status("s", "a word");
  ext.closeOverlay("o");
  ext.widget("w", "");
});
ext.command("submit", "send a prompt", () => ext.submit("submitted words"));
ext.command("host", "ask the host", async () => {
  await ext.host.setSessionTitle("A title");
  const { units = "none" } = await ext.settings("units");
  const words = [await ext.host.sessionTitle(), (await ext.host.chat("2+2?")).text, units];
  return [...words, ext.hostInfo.name].join(" | ");
});
ext.command("ask", "ask the user", async () => `you chose ${await ext.host.ask("Which?", ["this", "that"])}`);
ext.command("keep", "keep data", () => {
  appendFileSync(join(ext.dataDir, "kept.txt"), "kept\n");
  return basename(ext.dataDir);
});
ext.command("events", "tell what has happened", () => ["heard", ...heard.splice(0)].join("; "));
ext.command("close", "let no turn begin", (args) => {
  closed = args === "on";
});
ext.shortcut("ctrl+g", "a key", () => "pressed");

// What happens, and what may not

ext.on(["user_prompt_submit", "turn_start", "tool_call", "tool_result", "assistant_message", "turn_end"], (event) => {
  const what = { turn_start: event.step, tool_call: event.toolName, tool_result: event.toolName, turn_end: event.stop };
  heard.push(`${event.name}:${what[event.name] ?? event.text}`);
});
ext.intercept("tool_call", ({ tool, args }) => {
  if (tool !== "echo") return undefined;
  if (args.text === "explode") throw new ToolError("it exploded");
  if (args.text === "forbidden") return new Block("that is forbidden");
  return args.text === "change me" ? new Rewrite({ text: "changed" }) : undefined;
});
ext.intercept("turn_start", () => (closed ? new Block("no turns now") : undefined));
ext.intercept("assistant_message", ({ text }) => {
  if (text === "say nothing") return new Block("nothing to say");
  return text.includes("1234") ? new Replace(text.replace("1234", "****")) : undefined;
});
ext.intercept("before_agent_start", ({ systemPrompt }) =>
  systemPrompt.includes("Be brief.") ? undefined : `${systemPrompt}\nBe brief.`,
);
ext.intercept("tool_result", ({ tool, text }) => {
  if (tool !== "echo") return undefined;
  if (text === "whisper") return new Result({ text: "too quiet", isError: true });
  return text === "loud" ? text.toUpperCase() : undefined;
});

// Words, messages, models

ext.promptSection("Demo rules", "Use echo.");
ext.messageHook((text) => (text.includes("what time") ? "It is noon." : undefined));
ext.inputTransformer((text) => {
  if (text === "note to self") return new Handled();
  return text.includes("@me") ? text.replace("@me", "Ada") : undefined;
});
ext.compactor((messages) => messages.slice(-1));
ext.provider(
  "echoes",
  async (request, reply) => {
    await reply.thinking("hm");
    await reply.text("you said: ");
    await reply.text(request.text);
    await reply.text(request.system.includes("It is noon.") ? " (at noon)" : "");
    reply.usage(5, 2);
  },
  { models: [{ id: "echo-1", name: "Echo", contextWindow: 8192 }] },
);
ext.onReady(() => ext.host.subscribe("demo.topic", ({ word }) => ext.notify(`heard ${word}`)));

await ext.run({ main: import.meta });
