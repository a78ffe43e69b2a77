// An extension in TypeScript, with nothing annotated: what the types must let pass, and what they must not.

import { Block, Extension, Panel, Replace, Result, Rewrite, s, type Infer } from "../src/index.js";
import { testHost } from "../src/testing.js";

const ext = new Extension("sample", { version: "1.0.0" });

const place = s.object({ city: s.string("the city"), unit: s.enum("c", "f").optional() });
type Place = Infer<typeof place>;
const rome: Place = { city: "Rome" };

ext.tool({
  name: "weather",
  description: "Get the weather for a city.",
  parameters: s.object({ place, days: s.integer().default(1), tags: s.array(s.string()).nullable() }),
  async run({ place, days, tags }, call) {
    const unit: "c" | "f" | undefined = place.unit;
    const count: number = days + (tags?.length ?? 0);
    call.progress(`${place.city} ${unit}`);
    if (await call.wait(count)) return new Result({ text: "stopped", isError: true });
    // @ts-expect-error there is no such argument
    place.town;
    return { city: place.city.toUpperCase(), count };
  },
});
ext.tool({ name: "bare", run: () => undefined });
ext.tool({
  name: "plain",
  parameters: { type: "object", properties: { a: { type: "number" } } },
  run: ({ a }) => a + 1,
});

class Tasks extends Panel {
  tasks = ["one"];
  override render(width: number) {
    return this.tasks.map((task) => task.slice(0, width));
  }
  override onKey(key: string, text: string) {
    if (key === "rune") this.tasks.push(text);
  }
}

ext.command("tasks", "show them", () => new Tasks({ title: "Tasks" }));
ext.intercept("tool_call", ({ tool, args }) => (tool === "bash" ? new Block("no") : new Rewrite({ ...args })));
ext.intercept("assistant_message", ({ text }) => new Replace(text.replaceAll("x", "y")));
// @ts-expect-error a turn has no arguments to rewrite
ext.intercept("turn_start", () => new Rewrite({}));
// @ts-expect-error there is no such event
ext.on("turn_over", () => undefined);
ext.on(["turn_end", "EventRetry"], ({ name, stop, data }) => ext.log(`${name} ${stop} ${data?.Attempt}`));
ext.onReady(async () => ext.notify((await ext.host.chat("2+2?")).text, "success"));
ext.provider("sample", async (request, reply) => reply.text(request.messages.length.toString()), {
  models: [{ id: "m" }],
});

const host = await testHost(ext);
const { text } = await host.call("weather", { place: rome });
export const verdict: boolean = (await host.intercept("bash", { command: text })).blocked;
