// Node 18 or newer, no dependencies. stdout is the wire, so console.log is out of the question.

const send = (frame) => process.stdout.write(JSON.stringify(frame) + "\n");
const log = (...words) => console.error("[node]", ...words);

let count = 0;
let size = "";

const panel = () => ({
  title: "Counter",
  lines: [`count: ${count}`],
  footer: ["up and down to count, q to close", size].filter(Boolean).join(" · "),
});

const draw = () => send({ type: "panel_render", panel_id: "counter", ...panel() });

const repeat = ({ text, times }) => {
  if (!Number.isInteger(times) || times < 0 || times > 100) throw new Error("times must be between 0 and 100");
  return Array(times).fill(text).join(" ");
};

const pressed = (key) => {
  if (key === "q") return send({ type: "panel_close", panel_id: "counter" });
  if (key === "up" || key === "+") count += 1;
  if (key === "down" || key === "-") count -= 1;
  draw();
};

const handlers = {
  hello_ack: (frame) => log(`talking to ${frame.host ?? "a host"}, project ${frame.cwd}`),

  command_invoked: (frame) =>
    send({ type: "command_response", id: frame.id, action: "open_panel", open_panel: { id: "counter", ...panel() } }),

  tool_call: (frame) => {
    const answer = { type: "tool_result", id: frame.id };
    try {
      send({ ...answer, content: [{ type: "text", text: repeat(frame.args) }] });
    } catch (error) {
      send({ ...answer, content: [{ type: "text", text: error.message }], is_error: true });
    }
  },

  event: (frame) => {
    if (frame.event === "turn_end") send({ type: "notify", level: "info", message: `turn ended: ${frame.stop}` });
  },

  panel_key: (frame) => pressed(frame.key === "rune" ? frame.text : frame.key),

  panel_resize: (frame) => {
    size = `${frame.width}×${frame.height}`;
    draw();
  },

  panel_close: () => log("panel closed"),

  shutdown: () => {
    send({ type: "shutdown_ack" });
    process.exitCode = 0;
    process.stdin.destroy();
  },
};

send({ type: "hello", name: "node", version: "0.1.0", capabilities: ["commands", "tools", "events", "panels"] });
send({ type: "register_command", name: "counter", description: "open a counter" });
send({
  type: "register_tool",
  name: "repeat",
  description: "Repeat a text.",
  schema: {
    type: "object",
    properties: { text: { type: "string" }, times: { type: "integer" } },
    required: ["text", "times"],
  },
});
send({ type: "subscribe", events: ["turn_end"] });
send({ type: "ready" });

// Lines end at \n and nowhere else; node:readline would also split at U+2028.
let rest = "";
process.stdin.setEncoding("utf8");
process.stdin.on("data", (chunk) => {
  const lines = (rest + chunk).split("\n");
  rest = lines.pop();
  for (const line of lines) {
    try {
      const frame = JSON.parse(line);
      const handle = handlers[frame.type];
      if (handle) handle(frame);
      else log("unknown frame", frame.type);
    } catch (error) {
      log("cannot use a line:", error.message);
    }
  }
});
