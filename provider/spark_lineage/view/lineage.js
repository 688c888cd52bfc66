// The tab "Lineage" of a task instance and of a DAG in Airflow's UI: one ES module, without a build step.
//
// Airflow imports it (`react_apps` of the plugin), takes the component from `globalThis`, and gives it the ids of the
// page. React is the page's own, and so are the colours. The data are XComs that tasks leave (`view/__init__.py`), read
// through Airflow's REST API with the rights of the user. Nothing else is asked for, and no other host.

const { Component, createElement: h, useEffect, useMemo, useState } = globalThis.React;

const KEY = "spark_lineage";
const VERSION = 1;
const FOREIGN = `another version of the provider, or something else, wrote the XCom ${KEY}`;
const ROUTE = "plugin/spark-lineage-task-instance";
const POLL_MS = 5000;
const RUNS = 30;
// Of the datasets of one side, and of the columns of one dataset, so many are drawn until all are asked for.
const SHOWN = 50;
// A DAG with more nodes shows only the datasets that join tasks.
const DAG_SHOWN = 150;
const FINAL = ["success", "failed", "skipped", "upstream_failed", "removed"];
const TONES = { COMPLETE: "success", FAIL: "error", ABORT: "warning" };
const WIDTH = 230, GAP = 60, HEAD = 50, ROW = 24, SPACE = 12;

// Chakra's tokens, which follow dark and light.
const color = (name) => `var(--chakra-colors-${name})`;
const STYLE = `.spark-lineage {
  height: 100%; overflow: auto; padding: 16px; font-size: 14px; color: ${color("fg")};
  h2, th, .title { font-weight: 600; }
  h2 { margin: 20px 0 6px; }
  p { margin: 6px 0; max-width: 70em; overflow-wrap: anywhere; }
  a { text-decoration: underline; color: ${color("fg-info")}; }
  .muted { color: ${color("fg-muted")}; }
  .success { color: ${color("green-fg")}; }
  .error { color: ${color("red-fg")}; }
  .warning { color: ${color("orange-fg")}; }
  .note { padding: 6px 12px; border-left: 3px solid; background: ${color("bg-muted")}; }
  pre { white-space: pre-wrap; overflow-wrap: anywhere; max-height: 14em; overflow: auto; font-size: 12px; }
  .scroll { overflow-x: auto; }
  table { border-collapse: collapse; }
  th, td { text-align: left; padding: 3px 16px 3px 0; vertical-align: top; overflow-wrap: anywhere;
    border-bottom: 1px solid ${color("border")}; }
  th, td:first-child { white-space: nowrap; }
  button { cursor: pointer; }
  button:focus-visible, a:focus-visible { outline: 2px solid ${color("fg-info")}; outline-offset: -2px; }
  .plain, input { padding: 2px 10px; border-radius: 4px; border: 1px solid ${color("border-emphasized")}; }
  .graph { position: relative; margin: 12px 0; }
  path { fill: none; stroke: ${color("fg-subtle")}; stroke-width: 1.5; }
  path.lit { stroke: ${color("fg-info")}; stroke-width: 2; }
  path.vain { stroke: ${color("red-fg")}; stroke-dasharray: 5 4; }
  path.indirect { stroke-dasharray: 3 3; }
  path.faint { opacity: 0.3; }
  .plot { stroke: ${color("fg-info")}; color: ${color("fg-info")}; }
  .node { position: absolute; width: ${WIDTH}px; overflow: hidden; border-radius: 6px; background: ${color("bg")};
    border: 1px solid ${color("border-emphasized")}; }
  .node.task { background: ${color("bg-emphasized")}; }
  .node.input { border-left: 4px solid ${color("blue-solid")}; }
  .node.output { border-left: 4px solid ${color("green-solid")}; }
  .node.vain { border: 1px dashed ${color("red-solid")}; border-left-width: 4px; }
  .node.picked { outline: 2px solid ${color("fg-info")}; }
  .node span { display: block; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
  .head, .column { width: 100%; padding: 4px 10px; text-align: left; text-decoration: none; color: inherit; }
  .head { display: block; height: ${HEAD - 2}px; }
  .column, .head small { font-size: 12px; }
  .column { display: flex; height: ${ROW}px; padding: 2px 10px; gap: 8px; border-top: 1px solid ${color("border")}; }
  .column span:first-child { flex: 1; }
  .column.lit { background: ${color("blue-subtle")}; }
}`;

// ---- Airflow's REST API

const path = (...ids) => ids.map(encodeURIComponent).join("/");
const instance = (dag, run, task) => `${path(dag)}/dagRuns/${path(run)}/taskInstances/${path(task)}`;

async function get(where) {
  // Airflow 3.1.0 keeps the token there, later ones in a cookie.
  const token = localStorage.getItem("token");
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const reply = await fetch(new URL(`api/v2/dags/${where}`, document.baseURI), { headers });
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

// ---- Words

const number = (value) => value.toLocaleString();
const many = (count, one) => `${number(count)} ${one}${count === 1 ? "" : "s"}`;

/** A time in the zone and the language that the user has chosen for Airflow's page. */
function time(text) {
  const zone = localStorage.getItem("timezone");
  const options = { timeZone: zone ? JSON.parse(zone) : undefined, timeZoneName: "short" };
  return new Date(text).toLocaleString(localStorage.getItem("i18nextLng") ?? undefined, options);
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

// ---- The graph: nodes in layers from left to right, edges from the right side of one to the left side of another

function place(nodes) {
  const layers = [];
  for (const node of nodes) (layers[node.layer] ??= []).push(node);
  const high = (node) => HEAD + ROW * (node.lines?.length ?? 0);
  const total = (layer = []) => layer.reduce((sum, node) => sum + high(node) + SPACE, -SPACE);
  const height = Math.max(HEAD, ...layers.map(total));
  const places = new Map();
  layers.forEach((layer, at) => {
    // What is much lower than the highest layer stays in sight at its top.
    let y = Math.min((height - total(layer)) / 2, 260);
    for (const node of layer) {
      places.set(node.id, { left: at * (WIDTH + GAP), top: y });
      y += high(node) + SPACE;
    }
  });
  return { places, height, width: layers.length * (WIDTH + GAP) - GAP };
}

/** `edges` lead from `[node, line]` to another; without a line they end at the head of the node. */
function Graph({ label, nodes, edges }) {
  const { places, height, width } = place(nodes);
  const lines = new Map(nodes.map((node) => [node.id, node.lines ?? []]));
  const y = ([id, name]) => {
    const row = name === undefined ? -1 : lines.get(id).findIndex((line) => line.name === name);
    return places.get(id).top + (row < 0 ? HEAD / 2 : HEAD + ROW * (row + 0.5));
  };
  const curve = ({ from, to, kind }, key) => {
    const x1 = places.get(from[0]).left + WIDTH, x2 = places.get(to[0]).left;
    const d = `M${x1} ${y(from)}C${x1 + GAP / 2} ${y(from)} ${x2 - GAP / 2} ${y(to)} ${x2} ${y(to)}`;
    return h("path", { key, className: kind, d });
  };
  const drawn = edges.filter(({ from, to }) => places.has(from[0]) && places.has(to[0]));
  return h("div", { className: "scroll", tabIndex: 0, role: "group", "aria-label": label },
    h("div", { className: "graph", style: { width, height } },
      h("svg", { width, height, "aria-hidden": true }, drawn.map(curve)),
      nodes.map((node) => h(Node, { key: node.id, node, style: places.get(node.id) }))));
}

function Node({ node, style }) {
  const { kind, title, note, hint, href, pick, isPicked = false, lines = [] } = node;
  const shown = { title: hint, className: "head" };
  const words = [h("span", { key: 0, className: "title" }, title), h("small", { key: 1 }, h("span", null, note))];
  const head = href ? h("a", { ...shown, href }, words)
    : pick ? h("button", { ...shown, type: "button", "aria-expanded": isPicked, onClick: pick }, words)
      : h("div", shown, words);
  const line = ({ name, type, isLit, pick: onClick }) => {
    const className = `column ${isLit ? "lit" : ""}`;
    return h("button", { key: name, type: "button", className, "aria-pressed": isLit, onClick },
      h("span", null, name), h("span", { className: "muted" }, type));
  };
  return h("div", { className: `node ${kind} ${isPicked ? "picked" : ""}`, style }, head, lines.map(line));
}

// ---- The page of a task instance

/** The task instance, its lineage (`view`) or the error, and the URL in the backend; again and again until it ended. */
function useTask({ dagId, runId, taskId, mapIndex }) {
  const index = Number(mapIndex ?? -1);
  const [found, setFound] = useState({});
  useEffect(() => {
    let timer, isGone = false;
    const where = instance(dagId, runId, taskId);
    async function look() {
      // The task first: a lineage that is read when it has ended is its last one.
      const [task, problem] = await get(index < 0 ? where : `${where}/${index}`).then((one) => [one], (error) => [, error]);
      const [next, url] = await Promise.all([
        lineage(dagId, runId, taskId, index).then((view) => ({ view }), (error) => ({ error })),
        get(`${where}/links?map_index=${index}`).then(({ extra_links: links }) => links.Lineage, () => undefined),
      ]);
      if (isGone) return;
      setFound({ task, problem, url: /^https?:/.test(url) ? url : undefined, ...next });
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
  const { task, view, error, url } = found;
  if (!view) return h(Said, null, error ? whyNothing(found) : "Reading the lineage…");
  const isCut = task && FINAL.includes(task.state) && view.state === "RUNNING";
  const isRunning = view.state === "RUNNING" && !isCut;
  const isEmpty = !view.inputs && !view.outputs && !view.attempted;
  return h("div", null,
    h(Said, null, h("strong", { className: TONES[view.state] }, view.state), ` · ${time(view.time)} · `,
      h("span", { className: "muted" }, restsOn(view)), url && " · ",
      url && h("a", { href: url, target: "_blank", rel: "noreferrer" }, "Job in the backend")),
    isRunning && h("p", { className: "note" }, "The job is running. What it has read so far is shown; what it writes " +
      "counts when it has ended. The page looks again every 5 seconds."),
    isCut && h("p", { className: "note warning" }, `The task has ended as ${task.state} and left no last lineage: its ` +
      "worker was lost, or its state was set by hand. This is what was known before."),
    view.error && h("pre", { className: "note error", tabIndex: 0, "aria-label": "Error" }, view.error),
    notes(view).map((text) => h("p", { key: text, className: "note" }, text)),
    isEmpty ? h("p", null, view.why || NOTHING[view.state])
      : h(TaskGraph, { view, title: props.taskId }),
    h(Changes, { view }), h(Timeline, { view }), h(Runs, { ...props, isRunning }));
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

function TaskGraph({ view, title }) {
  const datasets = useMemo(() => datasetsOf(view), [view]);
  const links = useMemo(() => linksOf(view), [view]);
  const [picked, setPicked] = useState({});
  const [filter, setFilter] = useState("");
  const [isAll, setAll] = useState(false);
  const open = datasets.find((one) => one.id === picked.id);
  const lit = !open || picked.column === undefined ? [] : links.filter(({ from, column, to, target = picked.column }) =>
    (from === open.id && column === picked.column) || (to === open.id && target === picked.column));
  const mates = new Set(lit.flatMap(({ from, to }) => [from, to]));
  const fits = datasets.filter((one) => one.name.toLowerCase().includes(filter.toLowerCase()));
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
  const task = { id: "task", layer: 1, kind: "task", title, note: view.state, hint: view.job };
  const between = lit.map((link) => ({
    from: [link.from, link.column], to: [link.to, link.target], kind: isDirect(link) ? "lit" : "lit indirect",
  }));
  const count = (kind) => datasets.filter((one) => one.kind === kind).length;
  const vain = count("vain") && `${many(count("vain"), "output")} attempted in vain`;
  const counted = [many(count("input"), "input"), many(count("output"), "output"), vain].filter(Boolean).join(", ");
  const hidden = fits.length - shown.length;
  return h("section", { "aria-label": "Graph" },
    h("h2", null, counted),
    datasets.length > 20 && h("p", null,
      h("label", null, "Filter ", h("input", { value: filter, onChange: (event) => setFilter(event.target.value) })), " ",
      hidden > 0 && h("button", { type: "button", className: "plain", onClick: () => setAll(true) }, `Show ${number(hidden)} more`)),
    h(Graph, { nodes: [...shown.map(node), task], edges: [...shown.map(edge), ...between], label: `Lineage of ${title}` }),
    h("div", { "aria-live": "polite" },
      open ? h(Dataset, { one: open, column: picked.column, lit, datasets, showAll: isAll ? undefined : () => setAll(true) })
        : h("p", { className: "muted" }, "Choose a dataset to see its columns, and a column to see where it comes from and goes to.")));
}

function Dataset({ one, column, lit, datasets, showAll }) {
  const count = columnsOf(one).length;
  const names = Object.fromEntries(datasets.map((each) => [each.id, short(each.name)]));
  const columns = count ? many(count, "column") : !one.reason && "its columns are not known";
  const facts = [amounts(one), one.files !== undefined && many(one.files, "file"), columns, ...new Set([one.change, ...(one.writes ?? [])])];
  const link = ({ from, column: source, to, target, how }, key) =>
    h("li", { key }, `${names[from]}.${source} → ${names[to]}${target === undefined ? " (all rows)" : `.${target}`} `,
      h("span", { className: "muted" }, how));
  return h("section", { "aria-label": "Dataset" },
    h("h2", null, one.name), h("p", { className: "muted" }, joined(one.namespace, ...facts)),
    showAll && count > SHOWN &&
      h("button", { type: "button", className: "plain", onClick: showAll }, `Show all ${number(count)} columns`),
    column !== undefined && h("p", null, h("strong", null, column), !lit.length && ": no column lineage is known."),
    lit.length > 0 && h("ul", null, lit.map(link)));
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
    return [time(one.time), `${one.subject.toLowerCase()} ${one.id}`, h("span", { className }, one.status), text];
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

function Runs({ dagId, runId, taskId, mapIndex, isRunning }) {
  const [runs, setRuns] = useState();
  useEffect(() => {
    let isGone = false;
    const byRun = (a, b) => (a.entry.run_after < b.entry.run_after ? 1 : -1);
    latest(dagId, taskId, `limit=${RUNS}&map_index=${mapIndex ?? -1}`)
      .then((list) => isGone || setRuns(list.sort(byRun)), () => isGone || setRuns([]));
    return () => { isGone = true; };
  }, [dagId, runId, taskId, mapIndex, isRunning]);
  if (!runs) return h("p", { className: "muted" }, "Reading earlier runs…");
  if (runs.length < 2) return h("p", { className: "muted" }, "No earlier run of this task has left its lineage.");
  const rows = runs.map(({ entry, view }, at) => {
    const changes = schemaChanges(view, runs.slice(at + 1).find((earlier) => earlier.view.outputs)?.view);
    const run = entry.run_id === runId ? h("strong", null, runId) : h("a", { href: pageOf(entry) }, entry.run_id);
    return [run, h("span", { className: TONES[view.state] }, view.state), written(view)?.toLocaleString(),
      changes.length > 0 && h("span", { className: "warning" }, `⚠ schema changed: ${changes.join("; ")}`)];
  });
  return h("div", null, h(Plot, { runs: [...runs].reverse(), runId }),
    h(Table, { title: "Runs", heads: ["Run", "State", "Rows written", "Schema"], rows }));
}

function Plot({ runs, runId }) {
  const points = runs.map(({ entry, view }) => ({ id: entry.run_id, rows: written(view) })).filter(({ rows }) => rows !== undefined);
  if (points.length < 2) return null;
  const top = Math.max(1, ...points.map(({ rows }) => rows));
  const spot = ({ rows }, at) => [6 + (at * 388) / (points.length - 1), 64 - (rows / top) * 56];
  const circle = (point, at) => {
    const [cx, cy] = spot(point, at);
    return h("circle", { key: point.id, className: "plot", cx, cy, r: point.id === runId ? 5 : 2.5, fill: "currentColor" },
      h("title", null, `${point.id}: ${number(point.rows)}`));
  };
  const label = `Rows written, oldest run first: ${points.map(({ rows }) => number(rows)).join(", ")}`;
  return h("section", null, h("h2", null, `Rows written in the last ${number(points.length)} runs`),
    h("svg", { width: 400, height: 70, role: "img", "aria-label": label },
      h("polyline", { className: "plot", fill: "none", strokeWidth: 2, points: points.map(spot).join(" ") }),
      points.map(circle)));
}

// ---- The page of a DAG

function layersOf(ids, edges) {
  const before = new Map(ids.map((id) => [id, []])), after = new Map(ids.map((id) => [id, []]));
  edges.forEach(([from, to]) => { before.get(to).push(from); after.get(from).push(to); });
  const layers = new Map(), way = new Set();
  const layer = (id) => {
    // A task that reads what it writes makes a circle, which is cut where it closes.
    if (layers.has(id) || way.has(id)) return layers.get(id) ?? -1;
    way.add(id);
    layers.set(id, 1 + Math.max(-1, ...before.get(id).map(layer)));
    way.delete(id);
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
    nodes.set(id, { id, kind: "task", title, note: view.state, hint: entry.run_id, href: pageOf(entry) });
    for (const one of datasetsOf(view)) {
      const key = `${one.namespace} ${one.name}`, isInput = one.kind === "input";
      degree.set(key, (degree.get(key) ?? 0) + 1);
      edges.push(isInput ? [key, id, ""] : [id, key, one.reason ? "vain" : ""]);
      if (isInput && nodes.has(key)) continue;
      const note = one.reason ? `attempted in vain: ${one.reason}` : amounts(one);
      nodes.set(key, { id: key, kind: one.kind, title: short(one.name), note, hint: key });
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
  const pick = (node) => (node.href ? undefined : () => setPicked(node.id === picked ? undefined : node.id));
  const edge = ([from, to, kind]) => {
    const isNear = from === picked || to === picked;
    return { from: [from], to: [to], kind: picked === undefined ? kind : isNear ? "lit" : "faint" };
  };
  return h("div", null,
    h(Said, null, `The last lineage of ${many(tasks.length, "task")}, joined by datasets.`),
    isCut && h("p", { className: "note" }, "There are many datasets: only those that join tasks are shown."),
    h(Graph, { label: `Lineage of ${dagId}`, edges: edges.map(edge),
      nodes: nodes.map((node) => ({ ...node, isPicked: node.id === picked, pick: pick(node) })) }));
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
  const page = h(Guard, { key: JSON.stringify(props) }, h(props.taskId ? Task : Dag, props));
  return h("div", { className: "spark-lineage" }, h("style", null, STYLE), page);
}

// Airflow looks for the name of the app first: several plugins may load at once.
globalThis.AirflowPlugin = globalThis.Lineage = Lineage;
export default Lineage;
