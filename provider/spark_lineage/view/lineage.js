// The tab "Lineage" of a task instance and of a DAG in Airflow's UI: one ES module, without a build step.
//
// Airflow imports it (`react_apps` of the plugin), takes the component from `globalThis`, and gives it the ids of the
// page. React is the page's own, and so are the colours. The data are XComs that tasks leave (`view/__init__.py`), read
// through Airflow's REST API with the rights of the user; `app.py` finds the last writer of a dataset among them. No
// other host is contacted. `spark-lineage show --html` puts the same code, with `page.js`, into a page of its own.

const { Component, createElement: h, useEffect, useMemo, useRef, useState } = globalThis.React;

const KEY = "spark_lineage";
const VERSION = 1;
const FOREIGN = `another version of the provider, or something else, wrote the XCom ${KEY}`;
const ROUTE = "plugin/spark-lineage-task-instance";
const DOCS = "https://github.com/spark-lineage/airflow-provider-spark-lineage/blob/main/docs/tab.md";
const POLL_MS = 5000;
const RUNS = 30;
// Of the datasets of one side, and of the columns of one dataset, so many are drawn until all are asked for.
const SHOWN = 50;
// A DAG with more nodes shows only the datasets that join tasks.
const DAG_SHOWN = 150;
const FINAL = ["success", "failed", "skipped", "upstream_failed", "removed"];
const TONES = { COMPLETE: "success", FAIL: "error", ABORT: "warning" };
const SIGNS = { FAIL: "✕ ", ABORT: "■ " };
const WIDTH = 240, GAP = 60, HEAD = 50, ROW = 24, SPACE = 12;
const ZOOM = { least: 0.2, most: 2, step: 1.25 };
// The plot of the rows, in pixels for each run; up to so many runs have their number and date.
const STEP = 64, PLOT = 90, LABELLED = 12;

// Chakra's tokens, which follow dark and light.
const color = (name) => `var(--chakra-colors-${name})`;
const STYLE = `.spark-lineage {
  height: 100%; overflow: auto; padding: 16px; font-size: 14px; color: ${color("fg")};
  h2, th, .title { font-weight: 600; }
  .title { font-size: 13px; }
  h2 { margin: 20px 0 6px; }
  p { margin: 6px 0; max-width: 70em; overflow-wrap: anywhere; }
  a { text-decoration: underline; color: ${color("fg-info")}; }
  .muted { color: ${color("fg-muted")}; }
  .success { color: ${color("green-fg")}; }
  .error { color: ${color("red-fg")}; }
  .warning { color: ${color("orange-fg")}; }
  .state, .whole { white-space: nowrap; }
  .state { font-weight: 600; }
  .state.success::before { content: "✓ "; }
  .state.error::before { content: "✕ "; }
  .state.warning::before { content: "■ "; }
  .note { padding: 6px 12px; border-left: 3px solid; background: ${color("bg-muted")}; }
  pre { white-space: pre-wrap; overflow-wrap: anywhere; max-height: 14em; overflow: auto; font-size: 12px; }
  .scroll { overflow-x: auto; }
  table { border-collapse: collapse; }
  th, td { text-align: left; padding: 3px 16px 3px 0; vertical-align: top; overflow-wrap: anywhere;
    border-bottom: 1px solid ${color("border")}; }
  th, td:first-child { white-space: nowrap; }
  button { cursor: pointer; }
  button:focus-visible, a:focus-visible { outline: 2px solid ${color("fg-info")}; outline-offset: -2px; }
  .plain, input, select { padding: 2px 10px; border-radius: 4px; border: 1px solid ${color("border-emphasized")};
    background: ${color("bg")}; color: inherit; }
  select { max-width: 100%; }
  .tools { display: flex; flex-wrap: wrap; gap: 6px; align-items: center; margin: 8px 0; }
  .tools > span { display: flex; gap: 6px; align-items: center; margin-right: 10px; }
  .graph { position: relative; margin: 12px 4px; }
  path { fill: none; stroke: ${color("fg-subtle")}; stroke-width: 1.5; }
  path.lit { stroke: ${color("fg-info")}; stroke-width: 2; }
  path.vain { stroke: ${color("red-fg")}; stroke-dasharray: 5 4; }
  path.indirect { stroke-dasharray: 3 3; }
  path.faint { opacity: 0.3; }
  .plot { fill: ${color("fg-info")}; }
  .plot.error { fill: ${color("red-fg")}; }
  .plot.warning { fill: ${color("orange-fg")}; }
  .axis { fill: ${color("fg-muted")}; font-size: 11px; text-anchor: middle; }
  .node { position: absolute; width: ${WIDTH}px; overflow: hidden; border-radius: 6px; background: ${color("bg")};
    border: 1px solid ${color("border-emphasized")}; }
  .node.task { background: ${color("bg-emphasized")}; .head { height: ${HEAD - 4}px; } }
  .node.task.COMPLETE { border: 2px solid ${color("green-solid")}; }
  .node.task.FAIL { border: 2px solid ${color("red-solid")}; }
  .node.task.ABORT { border: 2px dashed ${color("orange-solid")}; }
  .node.input { border-left: 4px solid ${color("blue-solid")}; }
  .node.output { border-left: 4px solid ${color("green-solid")}; }
  .node.vain { border: 1px dashed ${color("red-solid")}; border-left-width: 4px; }
  .node.picked { outline: 2px solid ${color("fg-info")}; }
  .node.faint { opacity: 0.35; }
  .node span { display: block; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; unicode-bidi: plaintext; }
  .head, .column { width: 100%; padding: 4px 10px; text-align: left; text-decoration: none; color: inherit; }
  .head { display: flex; flex-direction: column; justify-content: center; height: ${HEAD - 2}px; }
  .column, .head small { font-size: 12px; }
  .column { display: flex; height: ${ROW}px; padding: 2px 10px; gap: 8px; border-top: 1px solid ${color("border")}; }
  .column span:first-child { flex: 1; }
  .column.lit { background: ${color("blue-subtle")}; }
}`;

// ---- Airflow's REST API

const path = (...ids) => ids.map(encodeURIComponent).join("/");
const instance = (dag, run, task) => `${path(dag)}/dagRuns/${path(run)}/taskInstances/${path(task)}`;

const get = (where) => ask(`api/v2/dags/${where}`);

async function ask(where) {
  // Airflow 3.1.0 keeps the token there, later ones in a cookie.
  const token = localStorage.getItem("token");
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const reply = await fetch(new URL(where, document.baseURI), { headers });
  if (reply.ok) return reply.json();
  throw Object.assign(new Error(`${reply.status} ${reply.statusText}`), { status: reply.status });
}

async function lineage(dag, run, task, index) {
  const { value } = await get(`${instance(dag, run, task)}/xcomEntries/${KEY}?map_index=${index}`);
  let view = value;
  try {
    if (typeof value === "string") view = JSON.parse(value);
  } catch {
    throw new Error("a custom XCom backend keeps it elsewhere");
  }
  // Before the first lineage there may be links.
  if (view?.v === VERSION && !view.state) throw Object.assign(new Error("no lineage yet"), { status: 404, links: view.links });
  try {
    // What draws it takes its shape for granted.
    datasetsOf(view).forEach((one) => [short(one.name), amounts(one), columnsOf(one)].join());
    if (view.v === VERSION && view.state && linksOf(view)) return view;
  } catch {
    // Said below.
  }
  throw new Error(FOREIGN);
}

/** The latest lineages of a task, or of all (`~`): `{ entry, view }`, the newest first. */
async function latest(dag, task, query, choose = (list) => list) {
  const where = `${instance(dag, "~", task)}/xcomEntries?xcom_key=${KEY}&order_by=-timestamp&${query}`;
  const read = (entry) =>
    lineage(dag, entry.run_id, entry.task_id, entry.map_index).then((view) => ({ entry, view }), () => undefined);
  return (await Promise.all(choose((await get(where)).xcom_entries).map(read))).filter(Boolean);
}

const pageOf = ({ dag_id, run_id, task_id, map_index }) =>
  `dags/${path(dag_id)}/runs/${path(run_id)}/tasks/${path(task_id)}/${map_index < 0 ? "" : `mapped/${map_index}/`}${ROUTE}`;

// ---- Texts

const number = (value) => value.toLocaleString();
const many = (count, one) => `${number(count)} ${one}${count === 1 ? "" : "s"}`;

const isUrl = (url) => /^https?:\/\//.test(url);

/** What a user has chosen for Airflow's page; a file on a disk may have no storage. */
function chosen(name) {
  try {
    return localStorage.getItem(name) ?? undefined;
  } catch {
    return undefined;
  }
}

/** A time in the zone and the language that the user has chosen for Airflow's page. */
function time(text, options = { dateStyle: "medium", timeStyle: "long" }) {
  const zone = chosen("timezone");
  return new Date(text).toLocaleString(chosen("i18nextLng"), { ...options, timeZone: zone && JSON.parse(zone) });
}

const day = (text) => time(text, { day: "numeric", month: "short" });

/** A long name by its beginning and its end, which differ. */
function brief(name) {
  const signs = [...name];
  return signs.length > 28 ? `${signs.slice(0, 10).join("")}…${signs.slice(-14).join("")}` : name;
}

const short = (name) => name.split("/").filter(Boolean).slice(-2).join("/") || name;
const joined = (...texts) => texts.filter(Boolean).join(" · ");

function size(bytes) {
  const at = bytes < 1 ? 0 : Math.min(4, Math.floor(Math.log10(bytes) / 3));
  const digits = { maximumFractionDigits: 1 };
  return `${(bytes / 1000 ** at).toLocaleString(undefined, digits)} ${["B", "kB", "MB", "GB", "TB"][at]}`;
}

const amounts = ({ rows, bytes }) =>
  joined(rows !== undefined && many(rows, "row"), bytes !== undefined && size(bytes));

function Said({ children, className = "" }) {
  return h("p", { role: "status", className }, children);
}

function State({ state }) {
  return h("span", { className: `state ${TONES[state] ?? ""}` }, state);
}

function External({ href, children }) {
  return h("a", { href, target: "_blank", rel: "noreferrer" }, children);
}

function download(name, type, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

// ---- The graph: nodes in layers from left to right, edges from the right side of one to the left side of another.
// In a narrow window the layers are one below the other, and all edges are at the right.

function place(nodes, isNarrow) {
  const byLayer = [];
  for (const node of nodes) (byLayer[node.layer] ??= []).push(node);
  const layers = byLayer.filter(Boolean);
  const high = (node) => HEAD + ROW * (node.lines?.length ?? 0);
  const total = (layer) => layer.reduce((sum, node) => sum + high(node) + SPACE, -SPACE);
  const heights = layers.map(total);
  const height = isNarrow ? heights.reduce((sum, each) => sum + each + 2 * SPACE, -2 * SPACE) : Math.max(...heights);
  const places = new Map();
  let y = 0;
  layers.forEach((layer, at) => {
    // What is much lower than the highest layer stays in sight at its top.
    y = isNarrow ? y + (at && SPACE) : Math.min((height - heights[at]) / 2, 260);
    for (const node of layer) {
      places.set(node.id, { left: isNarrow ? 0 : at * (WIDTH + GAP), top: y });
      y += high(node) + SPACE;
    }
  });
  return { places, height, width: (isNarrow ? 1 : layers.length) * (WIDTH + GAP) - (isNarrow ? 0 : GAP) };
}

/** `edges` lead from `[node, line]` to another; without a line they end at the head of the node. `data` is for download. */
function Graph({ label, nodes, edges, data, children }) {
  const isNarrow = matchMedia("(max-width: 700px)").matches;
  const { places, height, width } = place(nodes, isNarrow);
  const [zoom, setZoom] = useState(1);
  const frame = useRef(null);
  const scale = (to) => setZoom(Math.min(ZOOM.most, Math.max(ZOOM.least, to)));
  const fit = () => scale(Math.min(1, frame.current.clientWidth / (width + 8), (innerHeight * 0.9) / height));
  const keys = { "+": () => scale(zoom * ZOOM.step), "-": () => scale(zoom / ZOOM.step), 0: fit };
  const onKeyDown = (event) => {
    if (event.target === event.currentTarget && !event.ctrlKey && !event.metaKey) keys[event.key]?.();
  };
  const file = label.replace(/[^\p{L}\p{N}.-]+/gu, "_");
  const button = (text, title, onClick) =>
    h("button", { type: "button", className: "plain", title, "aria-label": title, onClick }, text);
  const lines = new Map(nodes.map((node) => [node.id, node.lines ?? []]));
  const y = ([id, name]) => {
    const row = name === undefined ? -1 : lines.get(id).findIndex((line) => line.name === name);
    return places.get(id).top + (row < 0 ? HEAD / 2 : HEAD + ROW * (row + 0.5));
  };
  const curve = ({ from, to, kind }, key) => {
    const x1 = places.get(from[0]).left + WIDTH, x2 = places.get(to[0]).left + (isNarrow ? WIDTH : 0);
    const bend = isNarrow ? x2 + GAP : x2 - GAP / 2;
    const d = `M${x1} ${y(from)}C${x1 + (isNarrow ? GAP : GAP / 2)} ${y(from)} ${bend} ${y(to)} ${x2} ${y(to)}`;
    return h("path", { key, className: kind, d });
  };
  const drawn = edges.filter(({ from, to }) => places.has(from[0]) && places.has(to[0]));
  return h("div", null,
    h("div", { className: "tools" }, children,
      h("span", null,
        button("−", "Zoom out", keys["-"]),
        h("span", { "aria-live": "polite" }, `${Math.round(zoom * 100)} %`),
        button("+", "Zoom in", keys["+"]),
        button("Fit", "Fit the graph into the window", fit)),
      h("span", null,
        button("JSON", "Download as JSON", () => download(`${file}.json`, "application/json", JSON.stringify(data, null, 2))),
        button("SVG", "Download as SVG", () => download(`${file}.svg`, "image/svg+xml", svgOf(frame.current.firstChild, zoom)))),
      h(External, { href: DOCS }, "Help")),
    h("div", { className: "scroll", tabIndex: 0, role: "group", "aria-label": label, ref: frame, onKeyDown },
      h("div", { className: "graph", style: { width, height, zoom } },
        h("svg", { width, height, "aria-hidden": true }, drawn.map(curve)),
        nodes.map((node) => h(Node, { key: node.id, node, style: places.get(node.id) })))));
}

/** The graph as the page shows it, as SVG alone: its lines, boxes and texts, where and as they are. */
function svgOf(graph, zoom) {
  const lines = graph.querySelector("svg"), svg = lines.cloneNode(true), origin = lines.getBoundingClientRect();
  const add = (parent, name, attributes, text = "") => {
    const made = parent.appendChild(document.createElementNS(svg.namespaceURI, name));
    Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
    made.textContent = text;
    return made;
  };
  const boxOf = (element) => {
    const { x, y, width, height } = element.getBoundingClientRect();
    return { x: (x - origin.x) / zoom, y: (y - origin.y) / zoom, width: width / zoom, height: height / zoom };
  };
  const { width, height } = boxOf(lines), whole = { x: -4, y: -4, width: width + 8, height: height + 8 };
  svg.setAttribute("viewBox", Object.values(whole).join(" "));
  svg.prepend(add(svg, "rect", { ...whole, fill: getComputedStyle(document.body).backgroundColor }));
  lines.querySelectorAll("path").forEach((path, at) => {
    const { stroke, strokeWidth, strokeDasharray, opacity } = getComputedStyle(path);
    svg.querySelectorAll("path")[at].setAttribute("style",
      `fill: none; stroke: ${stroke}; stroke-width: ${strokeWidth}; stroke-dasharray: ${strokeDasharray}; opacity: ${opacity}`);
  });
  for (const node of graph.querySelectorAll(".node")) {
    const { backgroundColor, borderTopColor, borderLeftColor, borderTopStyle, opacity } = getComputedStyle(node);
    const box = boxOf(node), group = add(svg, "g", { opacity });
    const dashes = borderTopStyle === "dashed" ? "5 4" : "none";
    add(group, "rect", { ...box, rx: 6, fill: backgroundColor, stroke: borderTopColor, "stroke-dasharray": dashes });
    add(group, "rect", { ...box, width: 4, rx: 2, fill: borderLeftColor });
    node.querySelectorAll(".lit").forEach((line) =>
      add(group, "rect", { ...boxOf(line), fill: getComputedStyle(line).backgroundColor }));
    for (const span of node.querySelectorAll("span")) {
      const { color: fill, fontFamily, fontSize, fontWeight } = getComputedStyle(span), at = boxOf(span);
      // The nested drawing cuts a long text at the edge of its box.
      const text = { y: at.height * 0.75, fill, "font-family": fontFamily, "font-size": fontSize, "font-weight": fontWeight };
      add(add(group, "svg", at), "text", text, span.textContent);
    }
  }
  return new XMLSerializer().serializeToString(svg);
}

function Node({ node, style }) {
  const { kind, title, note, hint, href, pick, isPicked = false, isFaint = false, lines = [] } = node;
  const shown = { title: hint, className: "head" };
  const texts = [h("span", { key: 0, className: "title" }, brief(title)), h("small", { key: 1 }, h("span", null, note))];
  const head = href ? h("a", { ...shown, href }, texts)
    : pick ? h("button", { ...shown, type: "button", "aria-expanded": isPicked, onClick: pick }, texts)
      : h("div", shown, texts);
  const line = ({ name, type, isLit, pick: onClick }) => {
    const className = `column ${isLit ? "lit" : ""}`;
    return h("button", { key: name, type: "button", className, "aria-pressed": isLit, onClick },
      h("span", null, name), h("span", { className: "muted" }, type));
  };
  return h("div", { className: `node ${kind} ${isPicked ? "picked" : ""} ${isFaint ? "faint" : ""}`, style }, head, lines.map(line));
}

// ---- The page of a task instance

/** The task instance, and its lineage (`view`) or the error; again and again until it ended. */
function useTask({ dagId, runId, taskId, mapIndex }) {
  const index = Number(mapIndex ?? -1);
  const [found, setFound] = useState({});
  useEffect(() => {
    let timer, isGone = false;
    const where = instance(dagId, runId, taskId);
    async function look() {
      // The task first: a lineage that is read when it has ended is its last one.
      const [task, problem] = await get(index < 0 ? where : `${where}/${index}`).then((one) => [one], (error) => [, error]);
      const next = await lineage(dagId, runId, taskId, index).then((view) => ({ view }), (error) => ({ error }));
      if (isGone) return;
      setFound({ task, problem, ...next });
      // An API server that is away may be back.
      const isOver = task ? FINAL.includes(task.state) : [403, 404].includes(problem.status);
      if (!isOver) timer = setTimeout(look, POLL_MS);
    }
    setFound({});
    look();
    return () => { isGone = true; clearTimeout(timer); };
  }, [dagId, runId, taskId, index]);
  return found;
}

function whyNothing({ task, problem, error }) {
  if (error.status === 403)
    return "You have no right to read the XComs of this DAG, in which a task leaves its lineage. Ask whoever runs Airflow.";
  if (error.status !== 404) return `The lineage cannot be read: ${error.message}.`;
  if (!task)
    return `Airflow does not show this task instance (${problem?.message}). If the task is mapped, open one of its indexes.`;
  if (task.state === "up_for_retry") return "The last try left no lineage. The next try follows.";
  if (task.state === "deferred") return "The task waits for its job in the triggerer. Its lineage comes when the job has ended.";
  if (!FINAL.includes(task.state))
    return `The task is still ${task.state ?? "waiting"}. If it collects lineage, it shows here as soon as the first datasets are known.`;
  if (!["success", "failed"].includes(task.state)) return "The task did not run.";
  return `The task has ended, and there is no lineage of it: ${task.operator_name ?? task.operator} may collect none ` +
    "(another operator without the policy, or lineage_enabled off), it may have run before this " +
    "version was installed, its worker may have been killed, or its XComs were cleared.";
}

function Task(props) {
  const found = useTask(props);
  const { task, view, error } = found;
  const isCut = view?.state === "RUNNING" && task && FINAL.includes(task.state);
  const isRunning = view?.state === "RUNNING" && !isCut;
  const runs = useRuns(props, isRunning);
  const [number, setNumber] = useState();
  const tries = [...(view?.tries ?? []), view];
  const links = h(Links, { links: view?.links ?? error?.links });
  const choice = h("p", { className: "tools" }, h(Choice, { runs, runId: props.runId }), h(Tries, { tries, number, setNumber }));
  if (!view) return h("div", null, h(Said, null, error ? whyNothing(found) : "Reading the lineage…"), choice, links);
  return h("div", null,
    h(Picture, { view: tries.find((one) => one.try === number) ?? view, title: props.taskId, isLive: true, pattern: view.links?.Dataset },
      choice, links,
      isRunning && h("p", { className: "note" }, "The job is running. What it has read so far is shown; what it writes " +
        "counts when it has ended. The page looks again every 5 seconds."),
      isCut && h("p", { className: "note warning" }, `The task has ended as ${task.state} and left no last lineage: its ` +
        "worker was lost, or its state was set by hand. This is what was known before.")),
    h(Runs, { runs, runId: props.runId }));
}

/** The links that the task has pushed. */
function Links({ links = {} }) {
  const known = Object.entries(links).filter(([name, url]) => name !== "Dataset" && isUrl(url));
  if (!known.length) return null;
  return h("p", null, "Links: ",
    known.map(([name, url], at) => h("span", { key: name }, at > 0 && " · ",
      h(External, { href: url }, name === "Lineage" ? "Job in the backend" : name))),
    h("span", { className: "muted" }, " (also under “Details” of the task)"));
}

/** Leads to the lineage of another run of the task. */
function Choice({ runs = [], runId }) {
  if (runs.length < 2 || !runs.some(({ entry }) => entry.run_id === runId)) return null;
  const open = (event) => {
    const { entry } = runs.find((run) => run.entry.run_id === event.target.value);
    location.assign(new URL(pageOf(entry), document.baseURI));
  };
  const option = ({ entry, view }) =>
    h("option", { key: entry.run_id, value: entry.run_id }, joined(time(entry.run_after), view.state, entry.run_id));
  return h("label", null, "Run ", h("select", { value: runId, onChange: open }, runs.map(option)));
}

/** Chooses a try of the run; `tries` has the latest last. */
function Tries({ tries, number, setNumber }) {
  if (tries.length < 2) return null;
  const option = (view) => h("option", { key: view.try, value: view.try }, joined(view.try, view.state, time(view.time)));
  return h("label", null, "Try ",
    h("select", { value: number ?? tries.at(-1).try, onChange: (event) => setNumber(Number(event.target.value)) }, tries.map(option)));
}

/** What is known of one try: the same in Airflow and in a page of its own, in which nothing can be looked up. */
function Picture({ view, title, pattern, isLive = false, children }) {
  const isEmpty = !view.inputs && !view.outputs && !view.attempted;
  return h("div", null,
    h(Said, null, h(State, { state: view.state }), ` · ${time(view.time)} · `,
      h("span", { className: "muted" }, restsOn(view))),
    children,
    view.error && h("pre", { className: "note error", tabIndex: 0, "aria-label": "Error" }, view.error),
    notes(view).map((text) => h("p", { key: text, className: "note" }, text)),
    isEmpty && h("p", null, view.why || NOTHING[view.state]),
    h(TaskGraph, { key: view.run_id, view, title, pattern, isLive }),
    h(Changes, { view }), h(Timeline, { view }));
}

const NOTHING = {
  COMPLETE: "Spark reported no dataset: the job read and wrote nothing that leaves a trace.",
  FAIL: "Nothing is known of what the job read and wrote before it failed.",
  ABORT: "Nothing is known of what the job read and wrote before it was killed.",
  RUNNING: "Nothing is known yet of what the job reads and writes.",
};

function restsOn(view) {
  const names = { listener: "the OpenLineage listener", event_log: "the event log", driver_ui: "the driver's UI" };
  const from = (view.evidence ?? []).map((name) => names[name] ?? name).join(" and ");
  const aside = view.set_aside ? `, ${number(view.set_aside)} set aside` : "";
  const lines = view.lines ? ` (${many(view.lines, "line")}${aside})` : "";
  return joined(from ? `from ${from}${lines}` : "no evidence", view.spark && `Spark ${view.spark}`, `run ${view.run_id}`);
}

function notes(view) {
  const names = (list) => list.map(([name, count]) => `${name} (${number(count)})`).join(", ");
  return [
    view.left_out && `The XCom has no room for all. Left out: ${names(Object.entries(view.left_out))}. ` +
      "The event in the backend has more.",
    view.reduced && "The event itself was too large, and has lost details (max_event_bytes).",
    view.unknown && `Commands whose datasets nothing names: ${names(view.unknown)}.`,
    view.unread && `Parts of plans that were not understood: ${names(view.unread)}.`,
  ].filter(Boolean);
}

/** All datasets of a task, with the ids, kinds and layers of their nodes. */
function datasetsOf(view) {
  const side = (list = [], letter, kind, layer) =>
    list.map((one, at) => ({ ...one, id: letter + at, kind, layer, namespace: view.namespaces[one.in] }));
  const outputs = [...side(view.outputs, "o", "output", 2), ...side(view.attempted, "a", "vain", 2)];
  return [...side(view.inputs, "i", "input", 0), ...outputs];
}

/** Column lineage as links from a column of an input; without a `target` to the output as a whole. */
function linksOf(view) {
  return (view.outputs ?? []).flatMap(({ lineage: byColumn = {}, whole = [] }, at) =>
    [...Object.entries(byColumn), [undefined, whole]].flatMap(([target, sources]) =>
      sources.map(([from, column, how]) => ({ from: `i${from}`, column, to: `o${at}`, target, how }))));
}

const isDirect = ({ target, how }) => target !== undefined && /IDENTITY|TRANSFORMATION|AGGREGATION|^DIRECT/.test(how);

function columnsOf({ columns = [], lineage: byColumn = {} }) {
  // Column lineage may know columns that the schema does not.
  const names = new Set(columns.map(([name]) => name));
  return [...columns, ...Object.keys(byColumn).filter((name) => !names.has(name)).map((name) => [name, ""])];
}

function TaskGraph({ view, title, pattern, isLive }) {
  const datasets = useMemo(() => datasetsOf(view), [view]);
  const links = useMemo(() => linksOf(view), [view]);
  const [picked, setPicked] = useState({});
  const [search, setSearch] = useState("");
  const [isAll, setAll] = useState(false);
  const open = datasets.find((one) => one.id === picked.id);
  const lit = !open || picked.column === undefined ? [] : links.filter(({ from, column, to, target = picked.column }) =>
    (from === open.id && column === picked.column) || (to === open.id && target === picked.column));
  const mates = new Set(lit.flatMap(({ from, to }) => [from, to]));
  const isFound = (text) => text.toLowerCase().includes(search.toLowerCase());
  const fits = datasets.filter((one) => isFound(`${one.namespace} ${one.name}`) || columnsOf(one).some(([name]) => isFound(name)));
  const counts = {};
  // What belongs to the picked column is always there.
  const shown = fits.filter((one) =>
    (counts[one.layer] = (counts[one.layer] ?? 0) + 1) <= SHOWN || isAll || mates.has(one.id) || one === open);
  const linesOf = (one) => {
    if (one === open) return columnsOf(one).slice(0, isAll ? undefined : SHOWN);
    const names = lit.map(({ from, column, to, target }) => (from === one.id ? column : to === one.id ? target : undefined));
    const types = new Map(one.columns);
    return [...new Set(names)].filter((name) => name !== undefined).map((name) => [name, types.get(name)]);
  };
  const line = (one) => ([name, type]) => {
    const isOn = one === open && name === picked.column;
    return { name, type, isLit: one !== open || isOn, pick: () => setPicked({ id: one.id, column: isOn ? undefined : name }) };
  };
  const node = (one) => ({
    id: one.id, layer: one.layer, kind: one.kind, title: short(one.name), hint: `${one.namespace} ${one.name}`,
    note: one.reason ? `attempted in vain: ${one.reason}` : amounts(one) + (one.unconfirmed ? " (not confirmed)" : ""),
    isPicked: one === open, pick: () => setPicked(one === open ? {} : { id: one.id }), lines: linesOf(one).map(line(one)),
  });
  const edge = (one) => {
    const isFed = !open?.fed_by || one.kind !== "input" || open.fed_by.includes(Number(one.id.slice(1)));
    const kind = one.reason ? "vain" : lit.length || !isFed ? "faint" : one === open ? "lit" : "";
    return one.kind === "input" ? { from: [one.id], to: ["task"], kind } : { from: ["task"], to: [one.id], kind };
  };
  const task = { id: "task", layer: 1, kind: `task ${view.state}`, title, note: view.state, hint: view.job, isFaint: lit.length > 0 };
  const between = lit.map((link) => ({
    from: [link.from, link.column], to: [link.to, link.target], kind: isDirect(link) ? "lit" : "lit indirect",
  }));
  const count = (kind) => datasets.filter((one) => one.kind === kind).length;
  const vain = count("vain") && `${many(count("vain"), "output")} attempted in vain`;
  const counted = [many(count("input"), "input"), many(count("output"), "output"), vain].filter(Boolean).join(", ");
  const hidden = fits.length - shown.length;
  return h("section", { "aria-label": "Graph" },
    h("h2", null, counted),
    h(Graph, { nodes: [...shown.map(node), task], edges: [...shown.map(edge), ...between], label: `Lineage of ${title}`,
      data: { ...view, links: undefined, tries: undefined } },
      h(Search, { search, setSearch, found: `${number(fits.length)} of ${many(datasets.length, "dataset")}` }),
      hidden > 0 && h("button", { type: "button", className: "plain", onClick: () => setAll(true) }, `Show ${number(hidden)} more`)),
    datasets.length > 0 && h("div", { "aria-live": "polite" },
      open ? h(Dataset, { key: open.id, one: open, column: picked.column, lit, datasets, isLive, pattern,
        showAll: isAll ? undefined : () => setAll(true) })
        : h("p", { className: "muted" }, "Choose a dataset to see its columns, and a column to see where it comes from and goes to.")));
}

function Search({ search, setSearch, found }) {
  return h("span", null,
    h("input", { type: "search", value: search, placeholder: "Search", "aria-label": "Search datasets and columns",
      onChange: (event) => setSearch(event.target.value) }),
    h("span", { className: "muted", "aria-live": "polite" }, search && found));
}

function Dataset({ one, column, lit, datasets, isLive, pattern, showAll }) {
  const count = columnsOf(one).length;
  const names = Object.fromEntries(datasets.map((each) => [each.id, short(each.name)]));
  const columns = count ? many(count, "column") : !one.reason && "its columns are not known";
  const facts = [amounts(one), one.files !== undefined && many(one.files, "file"), columns, ...new Set([one.change, ...(one.writes ?? [])])];
  const url = pattern?.replaceAll("{dataset_namespace}", () => path(one.namespace)).replaceAll("{dataset}", () => path(one.name));
  const link = ({ from, column: source, to, target, how }, key) =>
    h("li", { key }, h("bdi", null, `${names[from]}.${source}`), " → ",
      h("bdi", null, names[to] + (target === undefined ? " (all rows)" : `.${target}`)), " ",
      h("span", { className: "muted" }, how));
  return h("section", { "aria-label": "Dataset" },
    h("h2", { dir: "auto" }, one.name), h("p", { className: "muted" }, joined(one.namespace, ...facts)),
    isUrl(url) && h("p", null, h(External, { href: url }, "Dataset in the backend")),
    isLive && h(Writer, { namespace: one.namespace, name: one.name }),
    showAll && count > SHOWN &&
      h("button", { type: "button", className: "plain", onClick: showAll }, `Show all ${number(count)} columns`),
    column !== undefined && h("p", null, h("strong", null, column), !lit.length && ": no column lineage is known."),
    lit.length > 0 && h("ul", null, lit.map(link)));
}

/** The task that wrote a dataset last, among those that the user may read. */
function Writer({ namespace, name }) {
  const [{ writer, problem }, setFound] = useState({});
  useEffect(() => {
    let isGone = false;
    ask(`spark-lineage/writer?${new URLSearchParams({ namespace, name })}`)
      .then((found) => isGone || setFound(found), (error) => isGone || setFound({ problem: error.message }));
    return () => { isGone = true; };
  }, [namespace, name]);
  if (problem) return h("p", { className: "muted" }, `The task that wrote it last cannot be looked up: ${problem}.`);
  if (writer === undefined) return h("p", { className: "muted" }, "Looking for the task that wrote it last…");
  if (!writer) return h("p", { className: "muted" }, "No lineage that you may read has a task that wrote it.");
  const { dag_id, task_id, run_id } = writer;
  return h("p", null, "Last written by ", h("a", { href: pageOf(writer) }, `${dag_id}.${task_id}`), ` of the DAG `,
    h("a", { href: `dags/${path(dag_id)}/plugin/spark-lineage-dag` }, dag_id), ` · ${time(writer.time)} · ${run_id}`);
}

function Table({ title, heads, rows }) {
  if (!rows.length) return null;
  const row = (cells, key) => h("tr", { key }, cells.map((cell, at) => h("td", { key: at }, cell)));
  return h("section", null, h("h2", null, title),
    h("div", { className: "scroll", tabIndex: 0, role: "group", "aria-label": title }, h("table", null,
      h("thead", null, h("tr", null, heads.map((head) => h("th", { key: head, scope: "col" }, head)))),
      h("tbody", null, rows.map(row)))));
}

function Changes({ view }) {
  const column = ({ old, new: made }) => (old && made ? `${old} → ${made}` : made ? `+ ${made}` : `− ${old}`);
  const rows = (view.changes ?? []).map((one) => [
    time(one.time), `${one.change} ${one.objectType}`,
    one.previousObjectName ? `${one.previousObjectName} → ${one.objectName}` : one.objectName,
    joined(...(one.columns ?? []).map(column), one.is_ignored && "nothing changed", one.is_uncertain && "not certain"),
  ]);
  return h(Table, { title: "Catalog changes", heads: ["Time", "Change", "Object", "Details"], rows });
}

function Timeline({ view }) {
  const rows = (view.timeline ?? []).map((one) => {
    const className = /FAIL|KILL|LOST/.test(one.status) ? "error" : "";
    const text = one.text && h("pre", { className, tabIndex: 0 }, one.text);
    const whole = (name, content) => h("span", { className: `whole ${name}` }, content);
    const subject = h("span", null, whole("", one.subject.toLowerCase()), ` ${one.id}`);
    return [time(one.time), subject, whole(className, one.status), text];
  });
  return h(Table, { title: "Timeline", heads: ["Time", "What", "Status", "Details"], rows });
}

// ---- Earlier runs

const written = ({ outputs = [] }) =>
  outputs.reduce((sum, { rows }) => (rows === undefined ? sum : (sum ?? 0) + rows), undefined);

function schemaChanges(view, before) {
  const earlier = new Map((before ? datasetsOf(before) : []).map((one) => [`${one.kind} ${one.namespace} ${one.name}`, one]));
  const texts = ({ columns = [] }) => columns.map((column) => column.filter(Boolean).join(" "));
  return datasetsOf(view).flatMap((one) => {
    const old = earlier.get(`${one.kind} ${one.namespace} ${one.name}`);
    if (!old?.schema || !one.schema || old.schema === one.schema) return [];
    const [was, is] = [texts(old), texts(one)];
    // Where one has lost its columns, it is only known that they differ.
    const isKnown = was.length && is.length;
    const added = isKnown ? is.filter((text) => !was.includes(text)).map((text) => `+ ${text}`) : [];
    const gone = isKnown ? was.filter((text) => !is.includes(text)).map((text) => `− ${text}`) : [];
    return [[short(one.name), [...added, ...gone].join(", ")].filter(Boolean).join(": ")];
  });
}

/** The last runs that left their lineage, the newest first: `{ entry, view }`. */
function useRuns({ dagId, runId, taskId, mapIndex }, isRunning) {
  const [runs, setRuns] = useState();
  useEffect(() => {
    let isGone = false;
    const byRun = (a, b) => (a.entry.run_after < b.entry.run_after ? 1 : -1);
    latest(dagId, taskId, `limit=${RUNS}&map_index=${mapIndex ?? -1}`)
      .then((list) => isGone || setRuns(list.sort(byRun)), () => isGone || setRuns([]));
    return () => { isGone = true; };
  }, [dagId, runId, taskId, mapIndex, isRunning]);
  return runs;
}

function Runs({ runs, runId }) {
  if (!runs) return h("p", { className: "muted" }, "Reading earlier runs…");
  if (runs.length < 2) return h("p", { className: "muted" }, "No earlier run of this task has left its lineage.");
  const rows = runs.map(({ entry, view }, at) => {
    const changes = schemaChanges(view, runs.slice(at + 1).find((earlier) => earlier.view.outputs)?.view);
    const run = entry.run_id === runId ? h("strong", null, runId) : h("a", { href: pageOf(entry) }, entry.run_id);
    return [time(entry.run_after), run, h(State, { state: view.state }), written(view)?.toLocaleString(),
      changes.length > 0 && h("span", { className: "warning" }, `⚠ schema changed: ${changes.join("; ")}`)];
  });
  return h("div", null, h(Plot, { runs: [...runs].reverse() }),
    h(Table, { title: "Runs", heads: ["Date", "Run", "State", "Rows written", "Schema"], rows }));
}

/** A bar for each run, with its number above and its date below. */
function Plot({ runs }) {
  const bars = runs.map(({ entry, view }) => ({ entry, state: view.state, rows: written(view) })).filter(({ rows }) => rows !== undefined);
  if (bars.length < 2) return null;
  const top = Math.max(1, ...bars.map(({ rows }) => rows));
  const step = bars.length > LABELLED ? STEP / 2 : STEP;
  const bar = ({ entry, state, rows }, at) => {
    const height = Math.max(1, (rows / top) * (PLOT - 40)), x = at * step;
    const text = (y, label) => h("text", { className: "axis", x: x + step / 2, y }, label);
    const isLabelled = step === STEP || at % 2 === bars.length % 2;
    return h("g", { key: entry.run_id },
      h("title", null, `${entry.run_id}: ${many(rows, "row")}`),
      h("rect", { className: `plot ${state === "COMPLETE" ? "" : TONES[state]}`, x: x + step / 4, y: PLOT - 20 - height, width: step / 2, height }),
      isLabelled && text(PLOT - 25 - height, `${SIGNS[state] ?? ""}${number(rows)}`), isLabelled && text(PLOT - 5, day(entry.run_after)));
  };
  const label = `Rows written, oldest run first: ${bars.map(({ rows }) => number(rows)).join(", ")}`;
  return h("section", null, h("h2", null, `Rows written in the last ${number(bars.length)} runs`),
    h("div", { className: "scroll", tabIndex: 0, role: "group", "aria-label": "Plot" },
      h("svg", { width: step * bars.length, height: PLOT, role: "img", "aria-label": label }, bars.map(bar))));
}

// ---- The page of a DAG

function layersOf(ids, edges) {
  const before = new Map(ids.map((id) => [id, []])), after = new Map(ids.map((id) => [id, []]));
  edges.forEach(([from, to]) => { before.get(to).push(from); after.get(from).push(to); });
  const layers = new Map(), path = new Set();
  const layer = (id) => {
    // A task that reads what it writes makes a circle, which is cut where it closes.
    if (layers.has(id) || path.has(id)) return layers.get(id) ?? -1;
    path.add(id);
    layers.set(id, 1 + Math.max(-1, ...before.get(id).map(layer)));
    path.delete(id);
    return layers.get(id);
  };
  ids.forEach(layer);
  // What nothing has made stands beside the first task that reads it.
  const sources = ids.filter((id) => !before.get(id).length && after.get(id).length);
  sources.forEach((id) => layers.set(id, Math.max(0, Math.min(...after.get(id).map((next) => layers.get(next))) - 1)));
  return layers;
}

function dagGraph(tasks) {
  const nodes = new Map(), edges = [], degree = new Map();
  for (const { entry, view } of tasks) {
    const id = `task ${entry.task_id} ${entry.map_index}`;
    const title = `${entry.task_id}${entry.map_index < 0 ? "" : ` [${entry.map_index}]`}`;
    nodes.set(id, { id, kind: `task ${view.state}`, title, note: view.state, hint: entry.run_id, href: pageOf(entry) });
    for (const one of datasetsOf(view)) {
      const key = `${one.namespace} ${one.name}`, isInput = one.kind === "input";
      degree.set(key, (degree.get(key) ?? 0) + 1);
      edges.push(isInput ? [key, id, ""] : [id, key, one.reason ? "vain" : ""]);
      if (isInput && nodes.has(key)) continue;
      const note = one.reason ? `attempted in vain: ${one.reason}` : amounts(one);
      nodes.set(key, { id: key, kind: one.kind, title: short(one.name), note, hint: key, one, pattern: view.links?.Dataset });
    }
  }
  const isCut = nodes.size > DAG_SHOWN;
  const kept = [...nodes.values()].filter((node) => !isCut || node.href || degree.get(node.id) > 1);
  const ids = new Set(kept.map((node) => node.id));
  const between = edges.filter(([from, to]) => ids.has(from) && ids.has(to));
  const layers = layersOf([...ids], between);
  return { nodes: kept.map((node) => ({ ...node, layer: layers.get(node.id) })), edges: between, isCut };
}

function Dag({ dagId }) {
  const [{ tasks, error }, setFound] = useState({});
  const [picked, setPicked] = useState();
  const [search, setSearch] = useState("");
  useEffect(() => {
    let isGone = false;
    // The newest come first.
    const newest = (list) => [...new Map([...list].reverse().map((entry) => [`${entry.task_id} ${entry.map_index}`, entry])).values()];
    latest(dagId, "~", "limit=100", newest)
      .then((found) => isGone || setFound({ tasks: found }), (problem) => isGone || setFound({ error: problem }));
    return () => { isGone = true; };
  }, [dagId]);
  const { nodes, edges, isCut } = useMemo(() => dagGraph(tasks ?? []), [tasks]);
  if (error) return h(Said, null, whyNothing({ error }));
  if (!tasks) return h(Said, null, "Reading the lineage…");
  if (!tasks.length)
    return h(Said, null, "No task of this DAG has left lineage yet: run one that uses LineageSparkSubmitOperator, or the policy.");
  const isFound = ({ title, hint }) => `${title} ${hint}`.toLowerCase().includes(search.toLowerCase());
  const pick = (node) => (node.href ? undefined : () => setPicked(node.id === picked ? undefined : node.id));
  const edge = ([from, to, kind]) => {
    const isNear = from === picked || to === picked;
    return { from: [from], to: [to], kind: picked === undefined ? kind : isNear ? "lit" : "faint" };
  };
  const open = nodes.find((node) => node.id === picked);
  return h("div", null,
    h(Said, null, `The last lineage of ${many(tasks.length, "task")}, joined by datasets.`),
    isCut && h("p", { className: "note" }, "There are many datasets: only those that join tasks are shown."),
    h(Graph, { label: `Lineage of ${dagId}`, edges: edges.map(edge), data: tasks.map(({ view }) => ({ ...view, links: undefined, tries: undefined })),
      nodes: nodes.map((node) => ({ ...node, isPicked: node.id === picked, pick: pick(node), isFaint: !isFound(node) })) },
      h(Search, { search, setSearch, found: `${number(nodes.filter(isFound).length)} of ${many(nodes.length, "node")}` })),
    open && h(Dataset, { key: open.id, one: open.one, lit: [], datasets: [], isLive: true, pattern: open.pattern }));
}

/** What cannot be drawn takes nothing else of Airflow's page with it. */
class Guard extends Component {
  state = {};
  static getDerivedStateFromError(error) { return { error }; }
  render() {
    const { error } = this.state;
    return error ? h(Said, { className: "note error" }, `The lineage cannot be drawn (${error.message}): ${FOREIGN}.`) : this.props.children;
  }
}

function Lineage(props) {
  const page = props.view ? h(Picture, { ...props, title: props.view.job })
    : h(Guard, { key: JSON.stringify(props) }, h(props.taskId ? Task : Dag, props));
  return h("div", { className: "spark-lineage" }, h("style", null, STYLE), page);
}

// Airflow looks for the name of the app first: several plugins may load at once.
globalThis.AirflowPlugin = globalThis.Lineage = Lineage;
export default Lineage;
