import { Worker } from "@notation/edge";

// Two workers that call each other. Neither can be finished before the other one exists.
const api = new Worker({ id: "api", config: { main: "src/api.ts" } });
const auth = new Worker({ id: "auth", config: { main: "src/auth.ts", endpoint: false } });

api.bind("AUTH", auth);
auth.bind("API", api);

// Exports are what `notation deploy` prints and `notation outputs` shows.
export const url = api.url;
