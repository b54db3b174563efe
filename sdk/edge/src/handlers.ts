/** Another worker, as the code sees a service binding: `env.AUTH.fetch(...)`. */
export interface Service {
  fetch(input: Request | string | URL, init?: RequestInit): Promise<Response>;
}

/** What the host lends to one invocation. */
export interface Context {
  /** Keeps the worker alive until the promise settles; the answer does not wait for it. */
  waitUntil(task: Promise<unknown>): void;
}

/** Why `scheduled` was called. */
export interface ScheduledEvent {
  /** The minute that matched, in milliseconds since 1970 (UTC). */
  readonly scheduledTime: number;
  /** The pattern that matched. */
  readonly cron: string;
}

/** One message of a queue. */
export interface Message<Body = unknown> {
  readonly id: string;
  /** When it was sent, in milliseconds since 1970 (UTC). */
  readonly timestampMillis: number;
  /** How many times it was delivered, this time included. */
  readonly attempts: number;
  readonly body: Body;
}

/** Messages that are delivered together. Each can be settled once. */
export interface Batch<Body = unknown> {
  readonly batchId: string;
  /** Name of the queue. */
  readonly queue: string;
  readonly messages: readonly Message<Body>[];
  acknowledge(messageId: string): Promise<void>;
  retry(messageId: string, options?: { readonly delaySeconds?: number }): Promise<void>;
  acknowledgeAll(): Promise<void>;
  retryAll(options?: { readonly delaySeconds?: number }): Promise<void>;
}

/**
 * What the default export of a worker's module may handle.
 *
 * @example
 * export default {
 *   async fetch(request, env) {
 *     return env.AUTH.fetch(request);
 *   },
 * } satisfies Handlers<{ AUTH: Service }>;
 */
export interface Handlers<Env = Record<string, unknown>> {
  fetch?(request: Request, env: Env, context: Context): Response | Promise<Response>;
  scheduled?(event: ScheduledEvent, env: Env, context: Context): void | Promise<void>;
  queue?(batch: Batch, env: Env, context: Context): void | Promise<void>;
}
