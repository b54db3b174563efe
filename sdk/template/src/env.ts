import type { Service } from "@notation/edge";

/** What infra/app.ts binds to `api`. Absent for the moment in which the pair is being set up. */
export interface ApiEnv {
  readonly AUTH?: Service;
}

/** What infra/app.ts binds to `auth`. */
export interface AuthEnv {
  readonly API?: Service;
}
