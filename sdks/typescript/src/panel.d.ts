/** A panel: subclass it, and give it a `render`. */
export declare class Panel {
  constructor(members?: { title?: string; footer?: string; id?: string });
  id: string;
  title: string;
  footer: string;
  /** The room there is, as far as the host has told. */
  width: number;
  height: number;
  get isOpen(): boolean;
  /** What it shows: lines, or a text. */
  render(width: number, height: number): string | string[];
  /** A key was pressed. `rune` is a character, which is in `text`. It is drawn anew afterwards. */
  onKey(key: string, text: string): unknown;
  onResize(width: number, height: number): unknown;
  /** The user closed it. */
  onClose(): unknown;
  /** Draws it anew, if that changes anything. Does nothing while it is not open. */
  update(): void;
  /** Closes it. Does nothing while it is not open. */
  close(): void;
  /** @internal */
  screen: Screen | undefined;
  /** @internal */
  drawn: string;
  /** @internal */
  turn: Promise<void>;
  /** @internal */
  look(): Look;
  /** @internal */
  inWords(): string;
}

/** @internal */
export interface Look {
  panel_id: string;
  title: string;
  lines: string[];
  footer: string;
}

/** @internal */
export interface Screen {
  draw(look: Look): void;
  close(panel: Panel): void;
}
