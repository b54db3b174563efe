export { Worker } from "./worker";
export type { ServiceBinding, WorkerConfig, WorkerContributions } from "./worker";
export type {
  Batch,
  Context,
  Handlers,
  Message,
  ScheduledEvent,
  Service,
} from "./handlers";
