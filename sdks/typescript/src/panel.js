// A panel: lines that the extension draws and keys that it is told. The session binds it to the host.

let made = 0;

/** Subclass it, and give it a `render`. */
export class Panel {
  /** @param {{ title?: string, footer?: string, id?: string }} [members] */
  constructor(members = {}) {
    made += 1;
    this.id = members.id ?? `panel-${made}`;
    this.title = members.title ?? "";
    this.footer = members.footer ?? "";
    /** The room there is, as far as the host has told. */
    this.width = 80;
    this.height = 24;
    /** @type {import("./panel.js").Screen | undefined} */
    this.screen = undefined;
    /** What was drawn last. */
    this.drawn = "";
    /** @type {Promise<void>} */
    this.turn = Promise.resolve();
  }

  get isOpen() {
    return this.screen !== undefined;
  }

  /**
   * @param {number} _width
   * @param {number} _height
   * @returns {string | string[]}
   */
  render(_width, _height) {
    throw new TypeError(`${this.constructor.name}: a panel needs render(width, height)`);
  }

  /**
   * @param {string} _key
   * @param {string} _text
   * @returns {unknown}
   */
  onKey(_key, _text) {
    return undefined;
  }

  /**
   * @param {number} _width
   * @param {number} _height
   * @returns {unknown}
   */
  onResize(_width, _height) {
    return undefined;
  }

  /** @returns {unknown} */
  onClose() {
    return undefined;
  }

  /** Draws it anew, if that changes anything. Does nothing while it is not open. */
  update() {
    if (this.screen === undefined) return;
    const look = this.look();
    const drawn = JSON.stringify(look);
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    this.screen.draw(look);
  }

  /** Closes it. Does nothing while it is not open. */
  close() {
    const { screen } = this;
    this.screen = undefined;
    screen?.close(this);
  }

  /** @returns {{ panel_id: string, title: string, lines: string[], footer: string }} */
  look() {
    const shown = this.render(this.width, this.height);
    const lines = typeof shown === "string" ? shown.split("\n") : shown.map(String);
    return { panel_id: this.id, title: this.title, lines, footer: this.footer };
  }

  /** For where it cannot be opened. */
  inWords() {
    const { title, lines, footer } = this.look();
    return [title, ...lines, footer].join("\n").replace(/^\n+|\n+$/g, "");
  }
}
