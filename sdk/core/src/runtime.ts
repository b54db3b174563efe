/** What the evaluator lends to this package. */
interface Runtime {
  declare(self: object, type: string, options: unknown): object;
  contribute(self: object, values: unknown): void;
  dependOn(self: object, targets: readonly unknown[]): void;
  bindable(name: unknown, target: unknown, type: string): boolean;
  secret(name: string): unknown;
  concat(parts: readonly unknown[]): unknown;
}

const lent = (globalThis as unknown as Record<string, Runtime | undefined>)["\0notation"];

if (lent === undefined) {
  throw new Error("this package describes infrastructure and runs inside `notation` only");
}

export const runtime: Runtime = lent;
