import { Resource } from "@notation/core";
import type { Ref, ResourceArgs } from "@notation/core";

/** Gives a worker's code access to another worker under a name. */
export interface ServiceBinding {
  /** The name in the code: `env.AUTH`. */
  readonly name: string;
  /** `ScriptName` of the other worker. */
  readonly service: string;
}

/** What a worker is made of. */
export interface WorkerConfig {
  /** Its name at the host. Generated when left out. */
  readonly ScriptName?: string;
  /** The module with its handlers, relative to the project. */
  readonly main: string;
  /** Other workers that its code calls. Contributions are added. */
  readonly bindings?: readonly ServiceBinding[];
  /** Plain values for its code. */
  readonly vars?: Readonly<Record<string, string>>;
  /** Secret values for its code. */
  readonly secrets?: Readonly<Record<string, string>>;
  /** Whether it gets an address of its own (default true). */
  readonly endpoint?: boolean;
}

/**
 * What can be given to a worker after its construction. Bindings are collected; everything else
 * takes one value in all, so it is given here or in `config`, once.
 */
export interface WorkerContributions {
  /** One more, or some. */
  readonly bindings?: ServiceBinding | readonly ServiceBinding[];
  /** All of them, when `config` has none: the way to refer to a worker that refers back. */
  readonly vars?: Readonly<Record<string, string>>;
  /** All of them, when `config` has none. */
  readonly secrets?: Readonly<Record<string, string>>;
  /** When `config` does not say it. */
  readonly endpoint?: boolean;
}

/** Code that answers requests at the edge host. */
export class Worker extends Resource<WorkerContributions> {
  /** Its name at the host. */
  declare readonly ScriptName: Ref<string>;
  /** Its address. With `endpoint: false` there is none, and reading it is refused. */
  declare readonly url: Ref<string>;
  /** The version of its code that answers. */
  declare readonly versionId: Ref<string>;

  constructor(options: ResourceArgs<WorkerConfig>) {
    super("edge/Worker", options);
  }

  /** Lets this worker's code call `worker` as `env.<name>`. Both may bind each other. */
  bind(name: string, worker: Worker): this {
    if (!this.bindable(name, worker, "edge/Worker")) return this;
    return this.contribute({ bindings: [{ name, service: worker.ScriptName }] });
  }
}
