import type { Handlers } from "@notation/edge";
import type { AuthEnv } from "./env";

export default {
  async fetch(_request, env) {
    if (!env.API) return new Response("auth: api is not there yet\n", { status: 503 });
    const answer = await env.API.fetch("https://api/whoami");
    return new Response(`auth: who is calling?\n${await answer.text()}`);
  },
} satisfies Handlers<AuthEnv>;
