import type { NameSafe } from "./names";

/** The project file, `notation.config.ts`. */
export interface ProjectConfig {
  /** Names the app. */
  readonly app: string;
  /** Entry name to entry file, relative to the project file. At least one. */
  readonly entries: Readonly<Record<string, string>>;
  /** Glob or globs of function modules. */
  readonly runtimeModules?: string | readonly string[];
  /** The stage that commands use when none is said. */
  readonly defaultStage?: string;
  /** Where state is kept (URL). SQLite in `.notation/` when absent. */
  readonly state?: string;
}

/** Any path for an entry whose name is safe; for another a text that says what is wrong. */
type EntryFile<Name extends string> = Name extends NameSafe<Name> ? string : NameSafe<Name>;

/**
 * Defines the project. Its value must be the default export of `notation.config.ts`.
 *
 * @example
 * export default defineConfig({
 *   app: "orders-app",
 *   entries: { orders: "infra/orders.ts" },
 *   defaultStage: "dev",
 * });
 */
export function defineConfig<
  const App extends string,
  const EntryName extends string,
  const Stage extends string = never,
>(config: {
  /** Names the app: 1 to 63 of a-z, 0-9 and -, no hyphen at either end. */
  readonly app: NameSafe<App>;
  /** Entry name to entry file, relative to this file. Names as for `app`. */
  readonly entries: { readonly [Name in EntryName]: EntryFile<Name> };
  /** Glob or globs of function modules. */
  readonly runtimeModules?: string | readonly string[];
  /** The stage that commands use when none is said: as `app`, with at most 32 characters. */
  readonly defaultStage?: NameSafe<Stage, 32>;
  /** Where state is kept (URL). SQLite in `.notation/` when absent. */
  readonly state?: string;
}): ProjectConfig {
  return config as unknown as ProjectConfig;
}
