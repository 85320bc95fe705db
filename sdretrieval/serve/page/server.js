// What the server is asked. In each lane a newer request ends the older one.

const lanes = new Map();
const TOKEN = "sdretrieval-token";

export class Refusal extends Error {
  constructor(message, remedy, status) {
    super(message);
    this.remedy = remedy;
    this.status = status;
  }
}

export const isSuperseded = (error) => error.name === "AbortError";

export const setToken = (token) => sessionStorage.setItem(TOKEN, token);

/** `#token=…` is taken out of the address at once, so that it is not shared along with a view. */
export function takeToken() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!token) return;
  setToken(token);
  history.replaceState(null, "", location.pathname + location.search);
}

async function answer(lane, path, body) {
  lanes.get(lane)?.abort();
  const control = new AbortController();
  lanes.set(lane, control);
  const token = sessionStorage.getItem(TOKEN);
  const headers = { ...(token && { Authorization: `Bearer ${token}` }),
    ...(body && { "Content-Type": "application/json" }) };
  let response;
  try {
    response = await fetch(path, { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body),
      signal: control.signal });
  } catch (error) {
    if (isSuperseded(error)) throw error;
    throw new Refusal("The server does not answer.", "See whether it still runs, then search again.", 0);
  }
  if (response.ok) return response;
  const told = await response.json().catch(() => ({}));
  throw new Refusal(told.error ?? `The server answered ${response.status}.`, told.remedy, response.status);
}

const place = (index, rest) => `/v1/${encodeURIComponent(index)}/${rest}`;
const json = async (...request) => (await answer(...request)).json();

export const indexes = () => json("indexes", "/v1/indexes");
export async function search(lane, index, body) {
  const response = await answer(lane, place(index, "search"), body);
  const milliseconds = parseFloat(response.headers.get("server-timing")?.split("dur=")[1]);
  return { ...await response.json(), index, milliseconds };
}
export const explain = (index, body) => json("explain", place(index, "explain"), body);
export const documentOf = (index, docid) => json("document", place(index, `documents/${encodeURIComponent(docid)}`));
export const saved = async (index, body) => (await answer("run", place(index, "run"), body)).blob();

const project = (index, name, act) => place(index, `judging/${encodeURIComponent(name)}/${act}`);
export const projects = (index) => json("projects", place(index, "judging"));
export const judging = (index, name, act, body) => json(act, project(index, name, act), body);
export const judged = async (index, name, what, who) => (await answer("export",
  project(index, name, `export?what=${what}${who ? `&who=${encodeURIComponent(who)}` : ""}`))).blob();
export const leave = (lane) => lanes.get(lane)?.abort();
