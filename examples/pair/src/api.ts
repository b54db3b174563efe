/** What this Worker may call, named by `api.bind` in infra/app.ts. */
interface Env {
  AUTH?: { fetch(input: string): Promise<Response> };
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const { pathname } = new URL(request.url);
    // The way back: auth asks who is calling.
    if (pathname === "/whoami") return new Response("api: I am the one who asked");
    if (!env.AUTH) return new Response("api: auth is not connected yet\n", { status: 503 });
    const answer = await env.AUTH.fetch("https://auth/check");
    return new Response(`api: asking auth\n${await answer.text()}\n`);
  },
};
