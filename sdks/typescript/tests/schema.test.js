// Schemas: what the builder makes, and what is checked against them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { s } from "../src/index.js";
import { checked } from "../src/schema.js";

const everything = s.object({
  city: s.string("the city").min(1),
  days: s.integer().max(14).default(1),
  unit: s.enum("c", "f").optional(),
  place: s.object({ lat: s.number(), lon: s.number() }).nullable(),
  tags: s.array(s.string(), "words").max(2).optional(),
  extra: s.record(s.boolean()).optional(),
  kind: s.union(s.literal("a"), s.integer()).optional(),
});

test("the builder makes a JSON Schema", () => {
  assert.deepEqual(everything.json, {
    type: "object",
    properties: {
      city: { type: "string", description: "the city", minLength: 1 },
      days: { type: "integer", maximum: 14, default: 1 },
      unit: { type: "string", enum: ["c", "f"] },
      place: {
        anyOf: [
          {
            type: "object",
            properties: { lat: { type: "number" }, lon: { type: "number" } },
            required: ["lat", "lon"],
            additionalProperties: false,
          },
          { type: "null" },
        ],
      },
      tags: { type: "array", items: { type: "string" }, description: "words", maxItems: 2 },
      extra: { type: "object", additionalProperties: { type: "boolean" } },
      kind: { anyOf: [{ const: "a" }, { type: "integer" }] },
    },
    required: ["city", "place"],
    additionalProperties: false,
  });
});

test("arguments that fit come with their defaults", () => {
  const given = { city: "Rome", place: null, tags: ["a"], extra: { x: true }, kind: 3 };
  assert.deepEqual(checked(everything.json, given), { ...given, days: 1 });
  assert.deepEqual(checked({ type: "object", properties: { a: { type: ["string", "null"] } } }, { a: null, b: 1 }), {
    a: null,
    b: 1,
  });
});

test("arguments that do not fit are named, with what was expected", () => {
  const good = { city: "Rome", place: null };
  for (const [args, words] of [
    [{ place: null }, "city is missing"],
    [{ ...good, city: "" }, "city must have at least 1 characters, not 0"],
    [{ ...good, days: 1.5 }, "days must be an integer, not 1.5"],
    [{ ...good, days: 15 }, "days must be at most 14, not 15"],
    [{ ...good, unit: "k" }, 'unit must be one of "c", "f", not "k"'],
    [{ ...good, place: { lat: 1 } }, "place.lon is missing"],
    [{ ...good, tags: ["a", 2] }, "tags[1] must be a string, not 2"],
    [{ ...good, tags: ["a", "b", "c"] }, "tags must have at most 2 members, not 3"],
    [{ ...good, extra: { x: 1 } }, "extra.x must be a boolean, not 1"],
    [{ ...good, town: "x" }, "there is no argument town; there are city, days, extra, kind, place, tags, unit"],
    [[], "the arguments must be an object, not []"],
    [null, "the arguments must be an object, not null"],
  ])
    assert.throws(() => checked(everything.json, args), { message: words });
});
