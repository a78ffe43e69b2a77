// A model of its own, without a network: it says back what it hears, word by word, and calls a tool when told to.
import { Extension } from "./hilt-sdk/src/index.js";

export const ext = new Extension("parrot", "1.0.0");

ext.provider(
  "parrot",
  async (request, reply) => {
    const last = request.messages.at(-1);
    const wanted = /^call (\w+)/.exec(request.text);
    if (wanted && last.role === "user" && request.tools.some((tool) => tool.name === wanted[1])) {
      reply.toolCall(wanted[1], {});
      return;
    }
    for (const word of request.text.split(/\s+/)) {
      if (reply.cancelled) return;
      await reply.text(`${word} `);
    }
    reply.usage(request.text.length, request.text.length);
  },
  { models: [{ id: "grey-parrot", name: "Grey parrot", contextWindow: 32_000 }] },
);

await ext.run({ main: import.meta });
