/** A line that is too long to be sent. */
export declare class TooLong extends RangeError {
  constructor(bytes: number);
  readonly bytes: number;
}

/** A value that JSON has no form for; the message names the member. */
export declare class Unwritable extends TypeError {
  constructor(message: string);
}

export declare function jsonOf(value: unknown): string;
export declare function encoded(message: Record<string, any>): string;
