/** A line that is too long to be sent. */
export declare class TooLong extends RangeError {
  constructor(bytes: number);
  readonly bytes: number;
}

export declare function jsonOf(value: unknown): string;
export declare function encoded(message: Record<string, any>): string;
