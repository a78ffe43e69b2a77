/** A JSON Schema, as a plain object. */
export type JsonSchema = { readonly type?: string | readonly string[]; readonly [keyword: string]: unknown };

type Presence = "required" | "optional";

/** A schema under construction. Each method gives a new one. */
export declare class Schema<Out = any, When extends Presence = Presence> {
  constructor(json: Record<string, any>, optional?: boolean);
  /** The JSON Schema. */
  readonly json: Record<string, any>;
  readonly isOptional: boolean;
  private readonly out: Out;
  private readonly when: When;
  describe(text: string): Schema<Out, When>;
  /** It may be left out. */
  optional(): Schema<Out, "optional">;
  /** It may be left out, and is this then. */
  default(value: Out): Schema<Out, "required">;
  /** It may be null. */
  nullable(): Schema<Out | null, When>;
  /** The least value, length or number of members. */
  min(least: number): Schema<Out, When>;
  /** The greatest value, length or number of members. */
  max(most: number): Schema<Out, When>;
}

/** What a schema's values are. */
export type Infer<S> = S extends Schema<infer Out, any> ? Out : never;

type Shape = Record<string, Schema<any, any>>;
type Flat<T> = { [Name in keyof T]: T[Name] } & {};
type Members<S extends Shape> = Flat<
  { [Name in keyof S as S[Name] extends Schema<any, "required"> ? Name : never]: Infer<S[Name]> } & {
    [Name in keyof S as S[Name] extends Schema<any, "required"> ? never : Name]?: Infer<S[Name]>;
  }
>;

/** Builds schemas: `s.object({ city: s.string("the city"), days: s.integer().default(1) })`. */
export declare const s: {
  string(description?: string): Schema<string, "required">;
  number(description?: string): Schema<number, "required">;
  integer(description?: string): Schema<number, "required">;
  boolean(description?: string): Schema<boolean, "required">;
  enum<const Values extends readonly string[]>(...values: Values): Schema<Values[number], "required">;
  literal<const Value extends string | number | boolean | null>(value: Value): Schema<Value, "required">;
  array<Item>(items: Schema<Item, any>, description?: string): Schema<Item[], "required">;
  record<Value>(values: Schema<Value, any>, description?: string): Schema<Record<string, Value>, "required">;
  union<const Choices extends readonly Schema<any, any>[]>(
    ...choices: Choices
  ): Schema<Infer<Choices[number]>, "required">;
  any(description?: string): Schema<any, "required">;
  object<const S extends Shape>(shape: S, description?: string): Schema<Members<S>, "required">;
};

/** @internal */
export declare function checked(schema: Record<string, any>, args: unknown): any;
