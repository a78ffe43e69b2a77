// Node 18 or newer, no dependencies. Standard input and output are the wire; notifications are ignored, and the end of
// the input is the end.

import { createInterface } from "node:readline";

const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
const notify = (method, params) => send({ method, params });

const waiting = new Map();
let last = 0;
const ask = (method, params) =>
  new Promise((resolve, reject) => {
    last += 1;
    waiting.set(last, { resolve, reject });
    send({ id: last, method, params });
  });

class Unknown extends Error {}

const tools = {
  forecast: async ({ city }) => {
    if (!city) throw new Error("which city?");
    const { selected, cancelled } = await ask("host/askUser", { prompt: "Which unit?", choices: ["C", "F"] });
    return cancelled ? `${city}: 20 degrees` : `${city}: ${selected === "F" ? "68 °F" : "20 °C"}`;
  },
};

const methods = {
  initialize: async () => {
    notify("register/tool", {
      name: "forecast",
      description: "how warm it will be",
      parameters: { type: "object", properties: { city: { type: "string" } } },
    });
    notify("register/shortcut", { key: "ctrl+w", description: "today's weather" });
    return { name: "weather", version: "2.0.0" };
  },
  "tool/execute": async ({ name, args }) => ({ content: [{ type: "text", text: await tools[name](args) }] }),
  "shortcut/handle": async () => ({ action: { type: "showMessage", payload: { text: "It is fine." } } }),
};

const handle = async ({ id, method, params }) => {
  try {
    if (!(method in methods)) throw new Unknown(`Unknown method: ${method}`);
    send({ id, result: await methods[method](params) });
  } catch (error) {
    send({ id, error: { code: error instanceof Unknown ? -32601 : -32603, message: error.message } });
  }
};

// Before anybody has asked for anything.
notify("register/promptSection", { title: "Weather", content: "Ask for the forecast before you go out.", order: 3 });

createInterface({ input: process.stdin })
  .on("line", (line) => {
    const message = JSON.parse(line);
    if (message.id === undefined || message.id === null) return;
    if (message.method) {
      handle(message);
      return;
    }
    const asked = waiting.get(message.id);
    waiting.delete(message.id);
    if (message.error) asked?.reject(new Error(message.error.message));
    else asked?.resolve(message.result);
  })
  .on("close", () => process.exit(0));
