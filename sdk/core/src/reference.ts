import { runtime } from "./runtime";

declare const reference: unique symbol;

/** Tells a reference from a value that is known while the program runs. */
export interface Reference {
  readonly [reference]: true;
}

/**
 * A property of a resource. It stands where a `T` is expected in the config of another resource,
 * in a template string or in an export; what it is gets known while deploying.
 */
export type Ref<T> = T & Reference;

/** A part of a text: known, or a reference. */
export type TextPart = string | number | boolean;

/**
 * A value that the program cannot see. It is set per deployment with
 * `notation secret set ENTRY NAME`.
 */
export function secret(name: string): Ref<string> {
  return runtime.secret(name) as Ref<string>;
}

/** One text of many parts. The same as a template string. */
export function concat(...parts: readonly TextPart[]): Ref<string> {
  return runtime.concat(parts) as Ref<string>;
}

/** A template string: `` interpolate`https://${api.host}/` ``. The tag may be left out. */
export function interpolate(texts: TemplateStringsArray, ...parts: readonly TextPart[]): Ref<string> {
  const all: TextPart[] = [];
  texts.forEach((text, index) => {
    all.push(text);
    if (index < parts.length) all.push(parts[index] as TextPart);
  });
  return runtime.concat(all) as Ref<string>;
}
