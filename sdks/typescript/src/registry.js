// What an extension has registered, and how that is told to a host: once, in one go, or one by one later on.

import { jsonOf } from "./encoding.js";
import { FEATURES, offered } from "./features.js";
import { FIRST_EVENTS, INTERCEPTED, MADE_FROM, MORE_EVENTS } from "./events.js";

/** @typedef {import("./registry.js").Registration} Registration */

/** Something that cannot be registered; the message says why and what would do. */
export class RegistrationError extends TypeError {
  /** @param {string} message */
  constructor(message) {
    super(message);
    this.name = "RegistrationError";
  }
}

/** Everything that was registered. */
export class Registry {
  /** @param {string} name that of the extension */
  constructor(name) {
    this.name = name;
    /** @type {Map<string, any>} */
    this.tools = new Map();
    /** @type {Map<string, any>} */
    this.commands = new Map();
    /** @type {Map<string, any>} */
    this.shortcuts = new Map();
    /** @type {Map<string, any>} */
    this.sections = new Map();
    /** @type {Map<string, any>} */
    this.providers = new Map();
    /** @type {any[]} */
    this.handlers = [];
    /** @type {any[]} */
    this.interceptors = [];
    /** @type {any[]} */
    this.hooks = [];
    /** @type {any[]} */
    this.transformers = [];
    /** @type {Map<string, any>} */
    this.compactors = new Map();
    /** What is used, by feature, with the names it is used for.
     * @type {Map<string, Set<string>>} */
    this.uses = new Map();
    /** @type {Set<string>} */
    this.required = new Set();
  }

  /**
   * @param {string} feature
   * @param {string} [label]
   */
  use(feature, label) {
    if (!Object.hasOwn(FEATURES, feature)) {
      const known = Object.keys(FEATURES).join(", ");
      throw new RegistrationError(`there is no feature ${JSON.stringify(feature)}; those known are ${known}`);
    }
    const labels = this.uses.get(feature) ?? new Set();
    this.uses.set(feature, label ? labels.add(label) : labels);
  }

  /**
   * What is used and not offered, in words.
   *
   * @param {import("./protocol.js").Greeting} greeting
   * @param {Iterable<string>} [features]
   */
  missing(greeting, features = this.uses.keys()) {
    const words = [];
    const used = new Set(features);
    for (const feature of Object.keys(FEATURES).filter((one) => used.has(one))) {
      const labels = [...(this.uses.get(feature) ?? [])];
      if (!offered(feature, greeting)) words.push(spoken(feature, labels));
      else if (feature.endsWith("events") && greeting.host.dialect === "jsonrpc") {
        const untold = labels.filter((event) => !isRaw(event) && !MADE_FROM[event]);
        if (untold.length) words.push(spoken("events", untold));
      }
    }
    return words;
  }

  /** What a host of the frames dialect may be told before it has said what it knows. */
  early() {
    const plain = this.interceptors.filter(isPlain).map((one) => one.event);
    const events = this.handlers.map((one) => one.event).filter((event) => !isRaw(event));
    return [...this.toolsAndCommands(), ...subscription(events, plain)];
  }

  /**
   * All that is told once the host is known, or all there is in the jsonrpc dialect.
   *
   * @param {import("./protocol.js").Greeting} greeting
   * @returns {Registration[]}
   */
  rest(greeting) {
    const framed = greeting.host.dialect === "frames";
    if (framed && !offered("shortcuts", greeting)) {
      const prioritised = this.interceptors.filter((one) => !isPlain(one) && one.event !== "tool_result");
      return subscription(
        [],
        prioritised.map((one) => one.event),
      );
    }
    return [
      ...(framed ? [] : this.toolsAndCommands()),
      ...[...this.sections.values()].map((members) => kinded("prompt_section", members)),
      ...[...this.shortcuts.values()].map(({ key, description }) => kinded("shortcut", { key, description })),
      ...this.groups(greeting).map(({ name, priority, events }) => kinded("interceptor", { name, priority, events })),
      ...this.eventHandler(greeting),
      ...inOrder("message_hook", this.hooks, greeting),
      ...inOrder("input_transformer", this.transformers, greeting),
      ...[...this.compactors.values()].map(({ name, threshold }) => kinded("compactor", { name, threshold })),
      ...[...this.providers.values()].map(({ api, models }) => kinded("provider", { api, models })),
    ];
  }

  /** @returns {Registration[]} */
  toolsAndCommands() {
    return [
      ...[...this.tools.values()].map(({ members }) => kinded("tool", members)),
      ...[...this.commands.values()].map(({ run: _, ...members }) => kinded("command", members)),
    ];
  }

  /**
   * Interceptors by the name that the host asks for them with. Those without a name or a priority are asked for by
   * event in the frames dialect, and are in no group there.
   *
   * @param {import("./protocol.js").Greeting} greeting
   */
  groups(greeting) {
    const framed = greeting.host.dialect === "frames";
    const grouped = this.interceptors.filter((one) => !(framed && isPlain(one)));
    return [...new Set(grouped.map((one) => one.group))].flatMap((name) => {
      const asked = grouped
        .filter((one) => one.group === name)
        .filter((one) => one.event.startsWith("tool_") || offered(`intercept.${one.event}`, greeting));
      if (asked.length === 0) return [];
      const events = [...new Set(asked.map((one) => (one.event.startsWith("tool_") ? "tool_call" : one.event)))];
      const priority = Math.max(...asked.map((one) => one.priority));
      return [
        { name, priority, members: asked, events: events.some((event) => event !== "tool_call") ? events : undefined },
      ];
    });
  }

  /**
   * One handler for all: a host need not say which of several it means.
   *
   * @param {import("./protocol.js").Greeting} greeting
   * @returns {Registration[]}
   */
  eventHandler(greeting) {
    const framed = greeting.host.dialect === "frames";
    const told = this.handlers.filter((one) => isRaw(one.event) || (!framed && MADE_FROM[one.event]));
    if (told.length === 0) return [];
    const events = told.flatMap((one) => (isRaw(one.event) ? [one.event] : MADE_FROM[one.event]));
    const name = told.find((one) => one.name)?.name ?? this.name;
    const priority = Math.min(...told.map((one) => one.priority));
    return [
      kinded("event_handler", { name, priority, events: events.includes("*") ? undefined : [...new Set(events)] }),
    ];
  }
}

/**
 * Several hooks of one extension are asked for by one request, and hosts that do not know that would ask for each of
 * them by a request that runs all. So those are told of the first alone.
 *
 * @param {string} kind
 * @param {any[]} all
 * @param {import("./protocol.js").Greeting} greeting
 */
function inOrder(kind, all, greeting) {
  const sorted = byPriority(all);
  const told = greeting.host.name === "hilt" ? sorted : sorted.slice(0, 1);
  return told.map(({ name, priority }) => kinded(kind, { name, priority }));
}

/**
 * @template {{ priority: number }} T
 * @param {T[]} all
 */
export function byPriority(all) {
  return all.toSorted((one, other) => one.priority - other.priority);
}

/** @param {{ name?: string, priority: number, event: string }} interceptor */
export function isPlain({ name, priority, event }) {
  return name === undefined && priority === 0 && event !== "tool_result";
}

/** @param {string} event */
export function isRaw(event) {
  return event === "*" || event.startsWith("Event");
}

/**
 * @param {string[]} events
 * @param {string[]} intercept
 */
export function subscription(events, intercept) {
  const members = { events: [...new Set(events)], intercept: [...new Set(intercept)] };
  return events.length + intercept.length > 0 ? [kinded("subscribe", members)] : [];
}

/**
 * @param {string} kind
 * @param {Record<string, any>} members
 * @returns {Registration}
 */
export function kinded(kind, members) {
  return { kind, members };
}

/**
 * @param {string} feature
 * @param {string[]} labels
 */
function spoken(feature, labels) {
  const { words } = FEATURES[feature];
  return labels.length ? `${words} (${labels.join(", ")})` : words;
}

/**
 * @param {string} what
 * @param {unknown} name
 * @param {RegExp} pattern
 * @param {string} expected
 * @returns {string}
 */
export function checkedName(what, name, pattern, expected) {
  if (typeof name === "string" && pattern.test(name)) return name;
  throw new RegistrationError(`${what} ${JSON.stringify(name) ?? String(name)}: a name has ${expected}`);
}

/** @param {string} event */
export function checkedEvent(event) {
  const known = [...FIRST_EVENTS, ...MORE_EVENTS];
  if (known.includes(event) || /^(Event[A-Z]\w*|\*)$/.test(event)) return event;
  throw new RegistrationError(
    `there is no event ${JSON.stringify(event)}; those known are ${known.join(", ")} and Event… of the other dialect`,
  );
}

/** @param {string} event */
export function checkedInterception(event) {
  if (INTERCEPTED.includes(event)) return event;
  throw new RegistrationError(`${JSON.stringify(event)} cannot be intercepted; what can: ${INTERCEPTED.join(", ")}`);
}

/**
 * @template T
 * @param {string} what
 * @param {T} run
 * @returns {T}
 */
export function checkedFunction(what, run) {
  if (typeof run === "function") return run;
  throw new RegistrationError(`${what}: expected a function, got ${run === undefined ? "nothing" : typeof run}`);
}

/**
 * @param {string} what
 * @param {Record<string, any>} members
 */
export function checkedJson(what, members) {
  try {
    jsonOf(members);
  } catch (error) {
    throw new RegistrationError(`${what}: ${/** @type {Error} */ (error).message}`);
  }
}
