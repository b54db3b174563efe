import { Resource } from "@notation/core";
import type { Ref, ResourceArgs } from "@notation/core";

/** Plain data. */
export type Json =
  | string
  | number
  | boolean
  | null
  | readonly Json[]
  | { readonly [key: string]: Json | undefined };

/** What a worker may use: mostly `{ type: "service", service: other.Name }`. */
export interface Binding {
  readonly type?: string;
  /** Name of the worker it refers to. */
  readonly service?: string;
  readonly [key: string]: string | undefined;
}

/** What a simulated worker is made of. */
export interface WorkerConfig {
  /** Its name in the cloud. Generated when left out. */
  readonly Name?: string;
  /** Where it lives. A change replaces it. */
  readonly region?: string;
  readonly code?: string;
  /** Never shown. */
  readonly secret?: string;
  /** Contributions are added. The cloud refuses names of objects that do not exist. */
  readonly bindings?: readonly Binding[];
}

/** What can be added to a simulated worker after its construction. */
export interface WorkerContributions {
  readonly region?: string;
  readonly code?: string;
  readonly secret?: string;
  readonly bindings?: Binding | readonly Binding[];
}

abstract class SimWorker extends Resource<WorkerContributions> {
  declare readonly Name: Ref<string>;
  declare readonly arn: Ref<string>;
  /** `v1`, `v2`: one more on every write. */
  declare readonly versionId: Ref<string>;
  declare readonly region: Ref<string>;
  declare readonly code: Ref<string>;

  /** Adds a binding to another worker. Both may bind each other. */
  bind(name: string, worker: SimWorker): this {
    if (!this.bindable(name, worker, "sim/")) return this;
    return this.contribute({ bindings: [{ type: "service", name, service: worker.Name }] });
  }
}

/** A worker whose bindings may be left out. */
export class Worker extends SimWorker {
  constructor(options: ResourceArgs<WorkerConfig>) {
    super("sim/Worker", options);
  }
}

/** A worker that is refused without bindings; they may come by contribution. */
export class StrictWorker extends SimWorker {
  constructor(options: ResourceArgs<WorkerConfig>) {
    super("sim/StrictWorker", options);
  }
}

/** A worker whose bindings cannot be changed. */
export class PinnedWorker extends SimWorker {
  constructor(options: ResourceArgs<WorkerConfig>) {
    super("sim/PinnedWorker", options);
  }
}

/** A worker that must never be live without its contributions. */
export class GuardedWorker extends SimWorker {
  constructor(options: ResourceArgs<WorkerConfig>) {
    super("sim/GuardedWorker", options);
  }
}

/** What a thing is made of. */
export interface ThingConfig {
  /** Its name in the cloud. Generated when left out. */
  readonly Name?: string;
  /** Any data. */
  readonly value?: Json;
  /** Name of an object that must exist as long as this one. */
  readonly parent?: string;
  /** Reads answer something else every time. */
  readonly note?: string;
}

/** Any object, with an id that the cloud makes up. */
export class Thing extends Resource<ThingConfig> {
  declare readonly Name: Ref<string>;
  declare readonly id: Ref<string>;
  declare readonly value: Ref<any>;
  declare readonly parent: Ref<string>;

  constructor(options: ResourceArgs<ThingConfig>) {
    super("sim/Thing", options);
  }
}

/** What a frozen object is made of. */
export interface FrozenConfig {
  /** Its name in the cloud. Generated when left out. */
  readonly Name?: string;
  /** Any data. */
  readonly value?: Json;
}

/** An object that cannot be updated; a change replaces it. */
export class Frozen extends Resource<FrozenConfig> {
  declare readonly Name: Ref<string>;
  declare readonly id: Ref<string>;
  declare readonly value: Ref<any>;

  constructor(options: ResourceArgs<FrozenConfig>) {
    super("sim/Frozen", options);
  }
}

/** What a blind object is made of. */
export interface BlindConfig {
  /** Any data. */
  readonly value?: Json;
}

/** An object that the cloud cannot show. */
export class Blind extends Resource<BlindConfig> {
  declare readonly id: Ref<string>;
  declare readonly value: Ref<any>;

  constructor(options: ResourceArgs<BlindConfig>) {
    super("sim/Blind", options);
  }
}
