// JSON Schemas of tools' arguments: the builder `s`, and the check of arguments against a schema.
// Only what a tool's arguments need is checked; keywords that are not known are left to the host.

import { ToolError } from "./values.js";

/** Characters of a value that does not fit. */
const SHOWN = 80;

/** A schema under construction. Each method gives a new one. */
export class Schema {
  /**
   * @param {Record<string, any>} json
   * @param {boolean} [optional]
   */
  constructor(json, optional = false) {
    this.json = json;
    this.isOptional = optional;
  }

  /** @param {string} text */
  describe(text) {
    return new Schema({ ...this.json, description: text }, this.isOptional);
  }

  optional() {
    return new Schema(this.json, true);
  }

  /** @param {unknown} value */
  default(value) {
    return new Schema({ ...this.json, default: value }, true);
  }

  nullable() {
    const { description, ...rest } = this.json;
    const json = { anyOf: [rest, { type: "null" }] };
    return new Schema(description === undefined ? json : { ...json, description }, this.isOptional);
  }

  /**
   * The least value, length or number of members.
   * @param {number} least
   */
  min(least) {
    return new Schema({ ...this.json, [`min${sizeWord(this.json)}`]: least }, this.isOptional);
  }

  /**
   * The greatest value, length or number of members.
   * @param {number} most
   */
  max(most) {
    return new Schema({ ...this.json, [`max${sizeWord(this.json)}`]: most }, this.isOptional);
  }
}

/** @param {Record<string, any>} json */
function sizeWord(json) {
  return json.type === "string" ? "Length" : json.type === "array" ? "Items" : "imum";
}

/**
 * @param {Record<string, any>} json
 * @param {string} [description]
 */
function made(json, description) {
  return new Schema(description === undefined ? json : { ...json, description });
}

/** Builds schemas: `s.object({ city: s.string("the city"), days: s.integer().default(1) })`. */
export const s = {
  /** @param {string} [description] */
  string: (description) => made({ type: "string" }, description),
  /** @param {string} [description] */
  number: (description) => made({ type: "number" }, description),
  /** @param {string} [description] */
  integer: (description) => made({ type: "integer" }, description),
  /** @param {string} [description] */
  boolean: (description) => made({ type: "boolean" }, description),
  /** @param {string[]} values */
  enum: (...values) => made({ type: "string", enum: values }),
  /** @param {string | number | boolean | null} value */
  literal: (value) => made({ const: value }),
  /**
   * @param {Schema} items
   * @param {string} [description]
   */
  array: (items, description) => made({ type: "array", items: items.json }, description),
  /**
   * @param {Schema} values
   * @param {string} [description]
   */
  record: (values, description) => made({ type: "object", additionalProperties: values.json }, description),
  /** @param {Schema[]} members */
  union: (...members) => made({ anyOf: members.map((one) => one.json) }),
  /** @param {string} [description] */
  any: (description) => made({}, description),
  /**
   * @param {Record<string, Schema>} shape
   * @param {string} [description]
   */
  object: (shape, description) => {
    const entries = Object.entries(shape);
    const required = entries.filter(([, one]) => !one.isOptional).map(([name]) => name);
    const properties = Object.fromEntries(entries.map(([name, one]) => [name, one.json]));
    const json = { type: "object", properties, ...(required.length ? { required } : {}), additionalProperties: false };
    return made(json, description);
  },
};

/**
 * The arguments with defaults filled in.
 *
 * @param {Record<string, any>} schema
 * @param {unknown} args
 * @throws {ToolError} that names the argument and says what was expected
 */
export function checked(schema, args) {
  return fitted(schema, args, "");
}

/**
 * @param {any} schema
 * @param {any} value
 * @param {string} path
 * @returns {any}
 */
function fitted(schema, value, path) {
  if (schema === null || typeof schema !== "object") return value;
  const choices = schema.anyOf ?? schema.oneOf;
  if (Array.isArray(choices)) return oneOf(choices, value, path);
  if (schema.enum && !schema.enum.some((/** @type {unknown} */ one) => same(one, value))) {
    throw unfit(
      path,
      `be one of ${schema.enum.map((/** @type {unknown} */ one) => JSON.stringify(one)).join(", ")}`,
      value,
    );
  }
  if ("const" in schema && !same(schema.const, value)) throw unfit(path, `be ${JSON.stringify(schema.const)}`, value);
  if (schema.type !== undefined) {
    const types = [schema.type].flat();
    if (!types.some((type) => isOf(type, value))) throw unfit(path, `be ${types.map(named).join(" or ")}`, value);
  }
  if (typeof value === "number") checkSize(schema.minimum, schema.maximum, value, path, "be", "");
  if (typeof value === "string") checkSize(schema.minLength, schema.maxLength, [...value].length, path, "have", " characters");
  if (Array.isArray(value)) {
    checkSize(schema.minItems, schema.maxItems, value.length, path, "have", " members");
    return schema.items ? value.map((one, at) => fitted(schema.items, one, `${path}[${at}]`)) : value;
  }
  return isOf("object", value) ? members(schema, value, path) : value;
}

/**
 * @param {any} schema
 * @param {Record<string, unknown>} value
 * @param {string} path
 */
function members(schema, value, path) {
  /** @type {Record<string, unknown>} */
  const whole = {};
  const properties = schema.properties ?? {};
  const at = (/** @type {string} */ name) => (path ? `${path}.${name}` : name);
  const required = new Set(schema.required ?? []);
  for (const [name, one] of Object.entries(properties)) {
    const there = Object.hasOwn(value, name) && !(value[name] === null && !required.has(name) && isLeftOut(one));
    if (there) whole[name] = fitted(one, value[name], at(name));
    else if (one?.default !== undefined) whole[name] = structuredClone(one.default);
    else if (required.has(name)) throw new ToolError(`${at(name)} is missing`);
  }
  for (const name of required) {
    if (!Object.hasOwn(whole, name) && !Object.hasOwn(value, name)) throw new ToolError(`${at(name)} is missing`);
  }
  for (const [name, one] of Object.entries(value)) {
    if (Object.hasOwn(properties, name)) continue;
    if (schema.additionalProperties === false) {
      const known = Object.keys(properties).toSorted().join(", ") || "none";
      throw new ToolError(`there is no argument ${at(name)}; there are ${known}`);
    }
    whole[name] = fitted(schema.additionalProperties ?? {}, one, at(name));
  }
  return whole;
}

/**
 * Whether a null where one may be left out means just that, as models have it, and is no value.
 * @param {any} schema
 */
function isLeftOut(schema) {
  try {
    fitted(schema, null, "");
    return false;
  } catch {
    return true;
  }
}

/**
 * @param {any[]} choices
 * @param {unknown} value
 * @param {string} path
 */
function oneOf(choices, value, path) {
  /** @type {unknown} */
  let first;
  for (const choice of choices) {
    try {
      return fitted(choice, value, path);
    } catch (error) {
      first ??= error;
    }
  }
  throw first;
}

/**
 * @param {string} type
 * @param {unknown} value
 */
function isOf(type, value) {
  switch (type) {
    case "null":
      return value === null;
    case "array":
      return Array.isArray(value);
    case "object":
      return typeof value === "object" && value !== null && !Array.isArray(value);
    case "integer":
      return Number.isInteger(value);
    default:
      return typeof value === type;
  }
}

/**
 * @param {number | undefined} least
 * @param {number | undefined} most
 * @param {number} size
 * @param {string} path
 * @param {string} verb
 * @param {string} unit
 */
function checkSize(least, most, size, path, verb, unit) {
  if (least !== undefined && size < least) throw unfit(path, `${verb} at least ${least}${unit}`, size);
  if (most !== undefined && size > most) throw unfit(path, `${verb} at most ${most}${unit}`, size);
}

/**
 * @param {string} path
 * @param {string} expected
 * @param {unknown} value
 */
function unfit(path, expected, value) {
  const got = [...(JSON.stringify(value) ?? String(value))];
  const shown = got.length > SHOWN ? `${got.slice(0, SHOWN).join("")}…` : got.join("");
  return new ToolError(`${path || "the arguments"} must ${expected}, not ${shown}`);
}

/** @param {string} type */
function named(type) {
  return type === "null" ? "null" : `${/^[aeio]/.test(type) ? "an" : "a"} ${type}`;
}

/**
 * @param {unknown} one
 * @param {unknown} other
 */
function same(one, other) {
  return one === other || (typeof one === "object" && JSON.stringify(one) === JSON.stringify(other));
}
