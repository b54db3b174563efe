import type { Handlers } from "@notation/edge";
import type { ApiEnv } from "./env";

export default {
  async fetch(request, env) {
    const { pathname } = new URL(request.url);
    // The way back: auth asks who is calling.
    if (pathname === "/whoami") return new Response("api: I am the one who asked\n");
    if (!env.AUTH) return new Response("api: auth is not there yet\n", { status: 503 });
    const answer = await env.AUTH.fetch("https://auth/check");
    return new Response(`api: asking auth\n${await answer.text()}`);
  },
} satisfies Handlers<ApiEnv>;
