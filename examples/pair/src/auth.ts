/** What this Worker may call, named by `auth.bind` in infra/app.ts. */
interface Env {
  API?: { fetch(input: string): Promise<Response> };
}

export default {
  async fetch(_request: Request, env: Env): Promise<Response> {
    if (!env.API) return new Response("auth: api is not connected yet", { status: 503 });
    const answer = await env.API.fetch("https://api/whoami");
    return new Response(`auth: who is calling?\n${await answer.text()}`);
  },
};
