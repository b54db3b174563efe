import { runtime } from "./runtime";

/** What every resource takes besides its config. */
export interface ResourceOptions {
  /**
   * Unique in the program: 1 to 128 letters, digits, `.`, `_` and `-`, a letter or digit first.
   * May be left out when the config writes the resource's name by hand; then it is that name.
   */
  readonly id?: string;
  /** Refuse to delete, replace or revert it. */
  readonly protect?: boolean;
  /** `"never"`: it must not be live without its contributions. */
  readonly placeholder?: "never";
  /** Earlier ids, so that a new id is not a new resource. */
  readonly formerly?: string | readonly string[];
}

/** Options with the config of one type. */
export type ResourceArgs<Config> = ResourceOptions &
  ({} extends Config ? { readonly config?: Config } : { readonly config: Config });

/**
 * One thing to be made. Its other properties are references to what it will have.
 * Packages derive their resource types from it.
 */
export abstract class Resource<Contributions extends object = object> {
  protected constructor(type: string, options: ResourceOptions) {
    return runtime.declare(this, type, options) as this;
  }

  /**
   * Adds values to fields of this resource after its construction. They may refer to any
   * resource, also to one that refers back.
   */
  contribute(values: Contributions): this {
    runtime.contribute(this, values);
    return this;
  }

  /**
   * For packages that have a `bind`: whether a name and a resource of that type were given. What
   * is wrong is told with its place.
   */
  protected bindable(name: string, target: unknown, type: string): boolean {
    return runtime.bindable(name, target, type);
  }

  /** Comes after these resources, without using a value of them. */
  dependOn(...resources: readonly Resource<never>[]): this {
    runtime.dependOn(this, resources);
    return this;
  }
}
