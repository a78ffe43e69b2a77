// Patterns of spec/transcripts: whether a message contains one, and the whole message that one stands for.

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const isVariable = (value) =>
  typeof value === "string" && /^\$#?\w+$/.test(value) && value !== "$any" && value !== "$absent";
const isDefault = (value) =>
  value === undefined ||
  value === null ||
  value === "" ||
  value === 0 ||
  value === false ||
  (typeof value === "object" && Object.keys(value).length === 0);

/** Where it first differs, or undefined. A member at its default and a missing one are the same. */
export function difference(pattern, value, variables, path = "") {
  if (pattern === "$any") return undefined;
  if (isVariable(pattern)) {
    if (!variables.has(pattern)) variables.set(pattern, value);
    return difference(variables.get(pattern), value, variables, path);
  }
  if (isDefault(pattern) && isDefault(value)) return undefined;
  if (isObject(pattern) && "$contains" in pattern) {
    return String(value).includes(pattern.$contains)
      ? undefined
      : `${path}: ${JSON.stringify(value)} lacks ${pattern.$contains}`;
  }
  if (isObject(pattern) && isObject(value)) {
    for (const [name, one] of Object.entries(pattern)) {
      const found = difference(one, value[name], variables, `${path}.${name}`);
      if (found !== undefined) return found;
    }
    return undefined;
  }
  if (Array.isArray(pattern) && Array.isArray(value)) {
    if (pattern.length !== value.length) return `${path} (${value.length} members)`;
    return pattern
      .map((one, at) => difference(one, value[at], variables, `${path}[${at}]`))
      .find((one) => one !== undefined);
  }
  return pattern === value
    ? undefined
    : `${path || "the message"}: ${JSON.stringify(value)} is not ${JSON.stringify(pattern)}`;
}

/** The message that a host sends for a pattern. */
export function filled(pattern, variables) {
  if (isVariable(pattern)) {
    if (!variables.has(pattern))
      variables.set(pattern, pattern.startsWith("$#") ? 7000 + variables.size : `made-up-${variables.size}`);
    return variables.get(pattern);
  }
  if (Array.isArray(pattern)) return pattern.map((one) => filled(one, variables));
  if (!isObject(pattern)) return pattern;
  if ("$contains" in pattern) return pattern.$contains;
  if ("$has" in pattern) return [filled(pattern.$has, variables)];
  const kept = Object.entries(pattern).filter(([, one]) => one !== "$any" && one !== "$absent");
  return Object.fromEntries(kept.map(([name, one]) => [name, filled(one, variables)]));
}
