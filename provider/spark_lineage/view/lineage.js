// The tab "Lineage" of a task instance and of a DAG in Airflow's UI: one ES module, without a build step.
// Airflow imports it (`react_apps` of the plugin), takes the component from `globalThis`, and gives it the ids of the
// page; React is the page's own, and so are the colours. The data are XComs that tasks leave (`view/compact.py`), read
// through Airflow's REST API with the rights of the user. Nothing else is asked for, and no other host.

const { createElement: h, useEffect, useMemo, useState } = globalThis.React;

const KEY = "spark_lineage";
const POLL_MS = 5000;
const RUNS = 30;
// Of the datasets of one side, and of the columns of one dataset, so many are drawn until all are asked for.
const SHOWN = 50;
const JOINING_ONLY = 150;
const FINAL = ["success", "failed", "skipped", "upstream_failed", "removed"];
const TONES = { COMPLETE: "success", success: "success", FAIL: "error", failed: "error", ABORT: "warning" };
const WIDTH = 250, GAP = 90, HEAD = 50, ROW = 24, SPACE = 12;

const color = (name, light) => `var(--chakra-colors-${name}, ${light})`;
const STYLE = `
.spark-lineage { height: 100%; overflow: auto; padding: 16px; font-size: 14px; color: ${color("fg", "#18181b")}; }
.spark-lineage h2, .spark-lineage th { font-weight: 600; }
.spark-lineage h2 { margin: 20px 0 6px; }
.spark-lineage p { margin: 6px 0; max-width: 70em; overflow-wrap: anywhere; }
.spark-lineage a { text-decoration: underline; color: ${color("fg-info", "#2563eb")}; }
.spark-lineage .muted { color: ${color("fg-muted", "#52525b")}; }
.spark-lineage .success { color: ${color("green-fg", "#116932")}; }
.spark-lineage .error { color: ${color("red-fg", "#991919")}; }
.spark-lineage .warning { color: ${color("orange-fg", "#92310a")}; }
.spark-lineage .note { padding: 6px 12px; border-left: 3px solid; background: ${color("bg-muted", "#f4f4f5")}; }
.spark-lineage pre { white-space: pre-wrap; overflow-wrap: anywhere; max-height: 14em; overflow: auto; font-size: 12px; }
.spark-lineage table { border-collapse: collapse; }
.spark-lineage th, .spark-lineage td { text-align: left; padding: 3px 16px 3px 0; vertical-align: top;
  border-bottom: 1px solid ${color("border", "#e4e4e7")}; overflow-wrap: anywhere; }
.spark-lineage td.number, .spark-lineage th.number { text-align: right; font-variant-numeric: tabular-nums; }
.spark-lineage .graph { position: relative; margin: 12px 0; }
.spark-lineage .scroll { overflow-x: auto; }
.spark-lineage svg path { fill: none; stroke: ${color("border-emphasized", "#a1a1aa")}; stroke-width: 1.5; }
.spark-lineage svg path.lit { stroke: ${color("fg-info", "#2563eb")}; stroke-width: 2; }
.spark-lineage svg path.vain { stroke: ${color("red-fg", "#991919")}; stroke-dasharray: 5 4; }
.spark-lineage svg path.indirect { stroke-dasharray: 3 3; }
.spark-lineage svg path.faint { opacity: 0.25; }
.spark-lineage .node { position: absolute; width: ${WIDTH}px; overflow: hidden; border-radius: 6px;
  border: 1px solid ${color("border-emphasized", "#a1a1aa")}; background: ${color("bg", "#fff")}; }
.spark-lineage .node.task { background: ${color("bg-emphasized", "#e4e4e7")}; }
.spark-lineage .node.input { border-left: 4px solid ${color("blue-solid", "#2563eb")}; }
.spark-lineage .node.output { border-left: 4px solid ${color("green-solid", "#16a34a")}; }
.spark-lineage .node.vain { border: 1px dashed ${color("red-solid", "#dc2626")}; border-left-width: 4px; }
.spark-lineage .node.picked { outline: 2px solid ${color("fg-info", "#2563eb")}; }
.spark-lineage .head { display: block; width: 100%; height: ${HEAD - 2}px; padding: 5px 10px; text-align: left;
  text-decoration: none; color: inherit; }
.spark-lineage .node span { display: block; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.spark-lineage .node .title { font-weight: 600; }
.spark-lineage .node small { font-size: 12px; }
.spark-lineage .column { display: flex; width: 100%; height: ${ROW}px; padding: 2px 10px; gap: 8px; font-size: 12px;
  align-items: center; border-top: 1px solid ${color("border", "#e4e4e7")}; }
.spark-lineage .column span:first-child { flex: 1; text-align: left; }
.spark-lineage .column.lit { background: ${color("blue-subtle", "#dbeafe")}; }
.spark-lineage button:focus-visible, .spark-lineage a:focus-visible { outline: 2px solid ${color("fg-info", "#2563eb")};
  outline-offset: -2px; }
.spark-lineage .plain, .spark-lineage input { padding: 2px 10px; border-radius: 4px; background: ${color("bg", "#fff")};
  border: 1px solid ${color("border-emphasized", "#a1a1aa")}; }
.spark-lineage button { cursor: pointer; }
.spark-lineage .plot { stroke: ${color("fg-info", "#2563eb")}; }`;

// ---- Airflow's REST API

const path = (...ids) => ids.map((id) => encodeURIComponent(id)).join("/");

async function get(where) {
  // Airflow 3.1.0 keeps the token there, later ones in a cookie.
  const token = localStorage.getItem("token");
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const reply = await fetch(new URL(`api/v2/dags/${where}`, document.baseURI), { headers });
  if (!reply.ok) throw Object.assign(new Error(`${reply.status} ${reply.statusText}`), { status: reply.status });
  return reply.json();
}

const instance = (dag, run, task) => `${path(dag)}/dagRuns/${path(run)}/taskInstances/${path(task)}`;

async function lineage(dag, run, task, index) {
  const { value } = await get(`${instance(dag, run, task)}/xcomEntries/${KEY}?map_index=${index}`);
  return typeof value === "string" ? JSON.parse(value) : value;
}

async function entries(dag, task, index, limit) {
  const only = index === undefined ? "" : `&map_index=${index}`;
  const query = `xcom_key=${KEY}&order_by=-timestamp&limit=${limit}${only}`;
  return (await get(`${instance(dag, "~", task)}/xcomEntries?${query}`)).xcom_entries;
}

const pageOf = (entry) => `dags/${path(entry.dag_id)}/runs/${path(entry.run_id)}/tasks/${path(entry.task_id)}` +
  `${entry.map_index < 0 ? "" : `/mapped/${entry.map_index}`}/plugin/spark-lineage-task-instance`;

// ---- Words

const number = (value) => value.toLocaleString();
const size = (bytes) => {
  const at = bytes < 1 ? 0 : Math.min(4, Math.floor(Math.log(bytes) / Math.log(1000)));
  return `${(bytes / 1000 ** at).toLocaleString(undefined, { maximumFractionDigits: 1 })} ${["B", "kB", "MB", "GB", "TB"][at]}`;
};
const many = (count, one) => `${number(count)} ${one}${count === 1 ? "" : "s"}`;
const time = (text) => new Date(text).toLocaleString();
const short = (name) => name.split("/").filter(Boolean).slice(-2).join("/") || name;
const amounts = (one) => [
  one.rows === undefined ? "" : many(one.rows, "row"), one.bytes === undefined ? "" : size(one.bytes),
].filter(Boolean).join(" · ");
const isDirect = (how) => /IDENTITY|TRANSFORMATION|AGGREGATION|DIRECT/.test(how.replace("INDIRECT", ""));

// ---- The graph: nodes in layers from left to right, edges from right side to left side

function place(nodes) {
  const columns = [];
  for (const node of nodes) (columns[node.layer] ??= []).push(node);
  const high = (node) => HEAD + ROW * (node.lines?.length ?? 0);
  const total = (column) => column.reduce((sum, node) => sum + high(node) + SPACE, -SPACE);
  const height = Math.max(HEAD, ...columns.map((column) => total(column ?? [])));
  const places = new Map();
  columns.forEach((column, layer) => {
    // A column that is much lower than the others stays in sight at their top.
    let y = Math.min((height - total(column)) / 2, 260);
    for (const node of column) {
      places.set(node.id, { x: layer * (WIDTH + GAP), y });
      y += high(node) + SPACE;
    }
  });
  return { places, height, width: columns.length * (WIDTH + GAP) - GAP };
}

function Graph({ label, nodes, edges }) {
  const { places, height, width } = place(nodes);
  const lines = new Map(nodes.map((node) => [node.id, node.lines ?? []]));
  const end = ([id, line], isLeft) => {
    const at = places.get(id);
    const row = line === undefined ? -1 : lines.get(id).findIndex((one) => one.name === line);
    return [at.x + (isLeft ? 0 : WIDTH), at.y + (row < 0 ? HEAD / 2 : HEAD + ROW * (row + 0.5))];
  };
  const curve = ({ from, to, kind }, at) => {
    const [x1, y1] = end(from, false), [x2, y2] = end(to, true);
    return h("path", { key: at, className: kind, d: `M${x1} ${y1}C${x1 + GAP / 2} ${y1} ${x2 - GAP / 2} ${y2} ${x2} ${y2}` });
  };
  const drawn = edges.filter(({ from, to }) => places.has(from[0]) && places.has(to[0]));
  return h("div", { className: "scroll", tabIndex: 0, role: "group", "aria-label": label },
    h("div", { className: "graph", style: { width, height } },
      h("svg", { width, height, "aria-hidden": true }, drawn.map(curve)),
      nodes.map((node) => h(Node, { key: node.id, node, at: places.get(node.id) }))));
}

function Node({ node, at }) {
  const head = [h("span", { key: 0, className: "title" }, node.title), h("small", { key: 1 }, h("span", null, node.note || "\u00a0"))];
  const shown = { title: node.hint, className: "head" };
  return h("div", { className: `node ${node.kind} ${node.isPicked ? "picked" : ""}`, style: { left: at.x, top: at.y } },
    node.href ? h("a", { ...shown, href: node.href }, head)
      : node.pick ? h("button", { ...shown, type: "button", "aria-expanded": Boolean(node.isPicked), onClick: node.pick }, head)
        : h("div", shown, head),
    (node.lines ?? []).map((line) => h("button", {
      key: line.name, type: "button", className: `column ${line.isLit ? "lit" : ""}`, "aria-pressed": Boolean(line.isLit), onClick: line.pick,
    }, h("span", null, line.title ?? line.name), h("span", { className: "muted" }, line.type))));
}

// ---- The page of a task instance

function useTask({ dagId, runId, taskId, mapIndex }) {
  const index = Number(mapIndex ?? -1);
  const [found, setFound] = useState({});
  useEffect(() => {
    let timer, isGone = false;
    async function look() {
      const where = `${instance(dagId, runId, taskId)}${index < 0 ? "" : `/${index}`}`;
      // The task first: a lineage that is read when it has ended is its last one.
      const [task, problem] = await get(where).then((task) => [task], (error) => [undefined, error]);
      const next = await lineage(dagId, runId, taskId, index).then((view) => ({ view }), (error) => ({ error }));
      if (isGone) return;
      setFound({ task, problem, ...next });
      const isOver = task ? FINAL.includes(task.state) : next.error || next.view.state !== "RUNNING";
      if (!isOver) timer = setTimeout(look, POLL_MS);
    }
    setFound({});
    look();
    return () => { isGone = true; clearTimeout(timer); };
  }, [dagId, runId, taskId, index]);
  return found;
}

function why({ task, problem, error }) {
  if (error && error.status === 403) return "You have no right to read XComs of this DAG, in which a task leaves its lineage. Ask whoever runs Airflow.";
  if (error && error.status !== 404) return `Airflow did not answer: ${error.message}. Load the page again.`;
  if (!task) return `Airflow does not show this task instance (${problem?.message}). If the task is mapped, open one of its indexes.`;
  if (task.state === "up_for_retry") return "The last try left no lineage. The next one is to come.";
  if (task.state === "deferred") return "The task waits for its job in the triggerer. Its lineage comes when the job has ended.";
  if (!FINAL.includes(task.state)) return `The task is still ${task.state ?? "waiting"}. Its lineage shows here as soon as the first datasets are known.`;
  if (task.state === "skipped" || task.state === "upstream_failed" || task.state === "removed") return "The task did not run.";
  return `The task has ended, and there is no lineage of it: ${task.operator_name ?? task.operator} may not gather any (no operator or policy of ` +
    "this provider, lineage_enabled or lineage_tab_bytes off), it may have run before the tab came, its worker may have been killed, or its XComs were cleared.";
}

function Task(props) {
  const found = useTask(props);
  const { task, view, error } = found;
  if (!view && !error) return h("p", { role: "status" }, "Reading the lineage…");
  if (!view) return h("p", { role: "status" }, why(found));
  const isCut = task && FINAL.includes(task.state) && view.state === "RUNNING";
  const isRunning = view.state === "RUNNING" && !isCut;
  const isEmpty = !view.inputs && !view.outputs && !view.attempted;
  return h("div", null,
    h("p", { role: "status" }, h("strong", { className: TONES[view.state] }, view.state), ` · ${time(view.time)} · `,
      h("span", { className: "muted" }, rests(view)), view.url && " · ", view.url && h("a", { href: view.url, target: "_blank", rel: "noreferrer" }, "Job in the backend")),
    isRunning && h("p", { className: "note" }, "The job is running. What it has read so far is shown; what it writes counts when it has ended. The page looks again every 5 seconds."),
    isCut && h("p", { className: "note warning" }, `The task has ended as ${task.state} and left no last lineage: its worker was lost, or its state was set by hand. This is what was known before.`),
    view.error && h("section", { "aria-label": "Error" }, h("pre", { className: "note error", tabIndex: 0 }, view.error)),
    notes(view).map((text) => h("p", { key: text, className: "note" }, text)),
    isEmpty ? h("p", null, view.why || "Spark reported no dataset: the job read and wrote nothing that leaves a trace.") : h(TaskGraph, { view, title: props.taskId }),
    h(Changes, { view }), h(Timeline, { view }), h(Runs, { ...props, isFinal: !isRunning }));
}

function rests(view) {
  const names = { listener: "the OpenLineage listener", event_log: "the event log", driver_ui: "the driver's UI" };
  const from = (view.evidence ?? []).map((name) => names[name] ?? name).join(" and ");
  const lines = view.lines ? ` (${many(view.lines, "line")}${view.set_aside ? `, ${number(view.set_aside)} set aside` : ""})` : "";
  return [from ? `from ${from}${lines}` : "no evidence", view.spark && `Spark ${view.spark}`, `run ${view.run_id}`].filter(Boolean).join(" · ");
}

function notes(view) {
  const lost = Object.entries(view.left_out ?? {}).map(([what, count]) => `${what} (${number(count)})`);
  const names = (list) => list.map(([name, count]) => `${name} (${number(count)})`).join(", ");
  return [
    lost.length && `The XCom has no room for all (lineage_tab_bytes). Left out: ${lost.join(", ")}. The event in the backend has more.`,
    view.reduced && "The event itself was too large, and has lost details (max_event_bytes).",
    view.unknown && `Commands whose datasets nothing names: ${names(view.unknown)}.`,
    view.unread && `Parts of plans that were not understood: ${names(view.unread)}.`,
  ].filter(Boolean);
}

function sides(view) {
  const side = (list, letter, kind, layer) => (list ?? []).map((one, at) => ({ ...one, id: `${letter}${at}`, kind, layer, namespace: view.namespaces[one.in] }));
  return [...side(view.inputs, "i", "input", 0), ...side(view.outputs, "o", "output", 2), ...side(view.attempted, "a", "vain", 2)];
}

function columnLinks(view) {
  const links = [];
  (view.outputs ?? []).forEach((output, at) => {
    const add = (sources, target) => sources.forEach(([from, column, how]) => links.push({ from: `i${from}`, column, to: `o${at}`, target, how }));
    Object.entries(output.lineage ?? {}).forEach(([target, sources]) => add(sources, target));
    add(output.whole ?? [], undefined);
  });
  return links;
}

function TaskGraph({ view, title }) {
  const datasets = useMemo(() => sides(view), [view]);
  const links = useMemo(() => columnLinks(view), [view]);
  const [picked, setPicked] = useState({});
  const [filter, setFilter] = useState("");
  const [all, setAll] = useState(false);
  const open = datasets.find((one) => one.id === picked.id);
  const lit = !open || picked.column === undefined ? [] : links.filter((link) =>
    (link.from === open.id && link.column === picked.column) || (link.to === open.id && (link.target ?? picked.column) === picked.column));
  const mates = new Set(lit.flatMap((link) => [link.from, link.to]));
  const feeds = (one) => !open || !open.fed_by || open.fed_by.includes(Number(one.id.slice(1))) || one.kind !== "input";
  const fits = datasets.filter((one) => one.name.toLowerCase().includes(filter.toLowerCase()));
  const counts = {};
  // What belongs to the picked column is always there.
  const shown = fits.filter((one) => (counts[one.layer] = (counts[one.layer] ?? 0) + 1) <= SHOWN || all || mates.has(one.id) || one === open);
  const pick = (one) => () => setPicked(one.id === picked.id ? {} : { id: one.id });
  const line = (one, [name, type]) => ({
    name, type, pick: () => setPicked(one.id === picked.id && name === picked.column ? { id: one.id } : { id: one.id, column: name }),
    isLit: one.id === picked.id ? name === picked.column : true,
  });
  const lines = (one) => {
    if (one === open) return columnsOf(one, all ? Infinity : SHOWN).map((column) => line(one, column));
    const names = lit.map((link) => (link.from === one.id ? link.column : link.to === one.id ? link.target : undefined));
    return [...new Set(names.filter((name) => name !== undefined))].map((name) => line(one, (one.columns ?? []).find((each) => each[0] === name) ?? [name, ""]));
  };
  const nodes = shown.map((one) => ({
    id: one.id, layer: one.layer, kind: one.kind, title: short(one.name), hint: `${one.namespace} ${one.name}`, isPicked: one === open, lines: lines(one),
    note: one.kind === "vain" ? `attempted in vain: ${one.reason}` : `${amounts(one)}${one.unconfirmed ? " (not confirmed)" : ""}`,
    pick: pick(one),
  }));
  nodes.push({ id: "t", layer: 1, kind: "task", title, note: view.state, hint: view.job });
  const faint = (one) => (lit.length || !feeds(one) ? "faint" : one === open ? "lit" : "");
  const edges = [
    ...shown.map((one) => (one.kind === "input" ? { from: [one.id], to: ["t"], kind: faint(one) } : { from: ["t"], to: [one.id], kind: one.kind === "vain" ? "vain" : faint(one) })),
    ...lit.map((link) => ({ from: [link.from, link.column], to: [link.to, link.target], kind: isDirect(link.how) ? "lit" : "lit indirect" })),
  ];
  const hidden = fits.length - shown.length;
  const counted = [["input", "input"], ["output", "output"], ["vain", "output attempted in vain"]]
    .map(([kind, words]) => [datasets.filter((one) => one.kind === kind).length, words]).filter(([count]) => count)
    .map(([count, words]) => many(count, words).replace("output attempted in vains", "outputs attempted in vain")).join(", ");
  return h("section", { "aria-label": "Graph" },
    h("h2", null, counted),
    datasets.length > 20 && h("p", null, h("label", null, "Filter ", h("input", { value: filter, onChange: (event) => setFilter(event.target.value) })),
      hidden > 0 && " ", hidden > 0 && h("button", { type: "button", className: "plain", onClick: () => setAll(true) }, `Show ${number(hidden)} more`)),
    h(Graph, { nodes, edges, label: `Lineage of ${title}: ${counted}` }),
    h("div", { "aria-live": "polite" }, open ? h(Dataset, { one: open, column: picked.column, lit, datasets })
      : h("p", { className: "muted" }, "Choose a dataset to see its columns, and a column to see where it comes from and goes to.")));
}

function columnsOf(one, limit) {
  // Column lineage may know columns that the schema does not.
  const known = one.columns ?? [];
  const names = new Set(known.map(([name]) => name));
  return [...known, ...Object.keys(one.lineage ?? {}).filter((name) => !names.has(name)).map((name) => [name, ""])].slice(0, limit);
}

function Dataset({ one, column, lit, datasets }) {
  const count = columnsOf(one, Infinity).length;
  const names = Object.fromEntries(datasets.map((each) => [each.id, short(each.name)]));
  const facts = [amounts(one), one.files !== undefined && many(one.files, "file"), count ? many(count, "column") : one.kind !== "vain" && "columns are not known",
    one.change, (one.writes ?? []).join(", ")].filter(Boolean);
  return h("section", { "aria-label": "Dataset" },
    h("h2", null, one.name), h("p", { className: "muted" }, [one.namespace, ...facts].join(" · ")),
    column !== undefined && h("p", null, h("strong", null, column), lit.length ? "" : ": no column lineage is known."),
    lit.length > 0 && h("ul", null, lit.map((link, at) => h("li", { key: at }, `${names[link.from]}.${link.column} → ${names[link.to]}${link.target === undefined ? " (all rows)" : `.${link.target}`} `,
      h("span", { className: "muted" }, link.how)))));
}

function Table({ title, heads, rows }) {
  return rows.length > 0 && h("section", { "aria-label": title }, h("h2", null, title), h("div", { className: "scroll", tabIndex: 0, role: "group", "aria-label": title },
    h("table", null, h("thead", null, h("tr", null, heads.map((head) => h("th", { key: head, scope: "col" }, head)))),
      h("tbody", null, rows.map((row, at) => h("tr", { key: at }, row.map((cell, column) => h("td", { key: column }, cell))))))));
}

function Changes({ view }) {
  const columns = (change) => (change.columns ?? []).map(({ old, new: made }) => (old && made ? `${old} → ${made}` : made ? `+ ${made}` : `− ${old}`)).join(", ");
  const rows = (view.changes ?? []).map((one) => [time(one.time), `${one.change} ${one.objectType}`,
    one.previousObjectName ? `${one.previousObjectName} → ${one.objectName}` : one.objectName,
    [columns(one), one.is_ignored && "nothing changed", one.is_uncertain && "not certain"].filter(Boolean).join("; ")]);
  return h(Table, { title: "Catalog changes", heads: ["Time", "Change", "Object", "Details"], rows });
}

function Timeline({ view }) {
  const rows = (view.timeline ?? []).map((one) => [time(one.time), `${one.subject.toLowerCase()} ${one.id}`,
    h("span", { className: /FAIL|KILL|ERROR|LOST/.test(one.status) ? "error" : "" }, one.status),
    one.text && h("pre", { className: /FAIL|KILL/.test(one.status) ? "error" : "", tabIndex: 0 }, one.text)]);
  return h(Table, { title: "Timeline", heads: ["Time", "What", "Status", "Details"], rows });
}

// ---- Earlier runs

function schemaChanges(view, before) {
  const named = Object.fromEntries((before?.outputs ?? []).map((one) => [`${before.namespaces[one.in]} ${one.name}`, one]));
  return (view.outputs ?? []).flatMap((one) => {
    const old = named[`${view.namespaces[one.in]} ${one.name}`];
    if (!old || !old.schema || !one.schema || old.schema === one.schema) return [];
    const texts = (each) => (each.columns ?? []).map((column) => column.filter(Boolean).join(" "));
    const [was, is] = [texts(old), texts(one)];
    const changed = !was.length || !is.length ? [] : [...is.filter((text) => !was.includes(text)).map((text) => `+ ${text}`), ...was.filter((text) => !is.includes(text)).map((text) => `− ${text}`)];
    return [`${short(one.name)}${changed.length ? `: ${changed.join(", ")}` : ""}`];
  });
}

const written = (view) => (view.outputs ?? []).reduce((sum, one) => (one.rows === undefined ? sum : (sum ?? 0) + one.rows), undefined);

function Runs({ dagId, runId, taskId, mapIndex, isFinal }) {
  const [runs, setRuns] = useState();
  useEffect(() => {
    let isGone = false;
    entries(dagId, taskId, Number(mapIndex ?? -1), RUNS)
      .then((list) => Promise.all(list.map((entry) => lineage(entry.dag_id, entry.run_id, entry.task_id, entry.map_index).then((view) => ({ entry, view }), () => undefined))))
      .then((list) => isGone || setRuns(list.filter(Boolean).sort((a, b) => (a.entry.run_after < b.entry.run_after ? 1 : -1))), () => isGone || setRuns([]));
    return () => { isGone = true; };
  }, [dagId, taskId, mapIndex, runId, isFinal]);
  if (!runs) return h("p", { className: "muted" }, "Reading earlier runs…");
  if (runs.length < 2) return h("p", { className: "muted" }, "No earlier run of this task has left its lineage.");
  const before = (at) => runs.slice(at + 1).find(({ view }) => view.outputs)?.view;
  const rows = runs.map(({ entry, view }, at) => {
    const changes = schemaChanges(view, before(at));
    return [entry.run_id === runId ? h("strong", null, entry.run_id) : h("a", { href: pageOf(entry) }, entry.run_id),
      h("span", { className: TONES[view.state] }, view.state), written(view) === undefined ? "" : number(written(view)),
      changes.length > 0 && h("span", { className: "warning" }, `⚠ schema changed: ${changes.join("; ")}`)];
  });
  return h("div", null, h(Plot, { runs: [...runs].reverse(), runId }), h(Table, { title: "Runs", heads: ["Run", "State", "Rows written", "Schema"], rows }));
}

function Plot({ runs, runId }) {
  const points = runs.map(({ entry, view }) => ({ entry, rows: written(view) })).filter(({ rows }) => rows !== undefined);
  if (points.length < 2) return null;
  const top = Math.max(1, ...points.map(({ rows }) => rows));
  const at = points.map(({ entry, rows }, index) => ({ x: 6 + (index * 388) / (points.length - 1), y: 64 - (rows / top) * 56, entry, rows }));
  return h("section", { "aria-label": "Rows written" }, h("h2", null, `Rows written in the last ${number(points.length)} runs`),
    h("svg", { width: 400, height: 70, role: "img", "aria-label": `Rows written, oldest run first: ${points.map(({ rows }) => number(rows)).join(", ")}` },
      h("polyline", { className: "plot", fill: "none", strokeWidth: 2, points: at.map(({ x, y }) => `${x},${y}`).join(" ") }),
      at.map(({ x, y, entry, rows }) => h("circle", { key: entry.run_id, className: "plot", cx: x, cy: y, r: entry.run_id === runId ? 5 : 2.5, fill: "currentColor" },
        h("title", null, `${entry.run_id}: ${number(rows)}`)))));
}

// ---- The page of a DAG

function layersOf(ids, edges) {
  const before = new Map(ids.map((id) => [id, []])), after = new Map(ids.map((id) => [id, []])), layers = new Map(), path = new Set();
  edges.forEach(([from, to]) => { before.get(to).push(from); after.get(from).push(to); });
  const layer = (id) => {
    // A task that reads what it writes makes a circle, which is cut where it closes.
    if (layers.has(id) || path.has(id)) return layers.get(id) ?? -1;
    path.add(id);
    layers.set(id, 1 + Math.max(-1, ...before.get(id).map(layer)));
    path.delete(id);
    return layers.get(id);
  };
  ids.forEach(layer);
  ids.filter((id) => !before.get(id).length && after.get(id).length).forEach((id) => layers.set(id, Math.max(0, Math.min(...after.get(id).map((next) => layers.get(next))) - 1)));
  return layers;
}

function Dag({ dagId }) {
  const [found, setFound] = useState({});
  const [picked, setPicked] = useState();
  useEffect(() => {
    let isGone = false;
    const read = async () => {
      const latest = new Map();
      for (const entry of await entries(dagId, "~", undefined, 100)) {
        const key = `${entry.task_id} ${entry.map_index}`;
        if (!latest.has(key)) latest.set(key, entry);
      }
      return Promise.all([...latest.values()].map(async (entry) => ({ entry, view: await lineage(dagId, entry.run_id, entry.task_id, entry.map_index) })));
    };
    read().then((tasks) => isGone || setFound({ tasks }), (error) => isGone || setFound({ error }));
    return () => { isGone = true; };
  }, [dagId]);
  const { tasks, error } = found;
  const { nodes, edges } = useMemo(() => dagGraph(tasks ?? []), [tasks]);
  if (error) return h("p", { role: "status" }, why({ error }));
  if (!tasks) return h("p", { role: "status" }, "Reading the lineage…");
  if (!tasks.length) return h("p", { role: "status" }, "No task of this DAG has left lineage yet: run one that uses LineageSparkSubmitOperator, or the policy.");
  const isNear = ([from, to]) => from === picked || to === picked;
  const shown = nodes.map((node) => ({ ...node, isPicked: node.id === picked, pick: node.href ? undefined : () => setPicked(node.id === picked ? undefined : node.id) }));
  return h("div", null,
    h("p", { role: "status" }, `The last lineage of ${many(tasks.length, "task")}, joined by datasets.`),
    nodes.isCut && h("p", { className: "note" }, "There are many datasets: only those that join tasks are shown."),
    h(Graph, { nodes: shown, edges: edges.map((edge) => ({ from: [edge[0]], to: [edge[1]], kind: picked === undefined ? edge[2] : isNear(edge) ? "lit" : "faint" })), label: `Lineage of ${dagId}` }));
}

function dagGraph(tasks) {
  const nodes = new Map(), edges = [], degree = {};
  for (const { entry, view } of tasks) {
    const id = `task ${entry.task_id} ${entry.map_index}`;
    nodes.set(id, { id, kind: "task", title: `${entry.task_id}${entry.map_index < 0 ? "" : ` [${entry.map_index}]`}`, note: view.state, hint: entry.run_id, href: pageOf(entry) });
    for (const one of sides(view)) {
      const dataset = `${one.namespace} ${one.name}`;
      degree[dataset] = (degree[dataset] ?? 0) + 1;
      if (one.kind !== "input" || !nodes.has(dataset)) nodes.set(dataset, { id: dataset, kind: one.kind, title: short(one.name), note: one.reason ? `attempted in vain: ${one.reason}` : amounts(one), hint: dataset });
      edges.push(one.kind === "input" ? [dataset, id, ""] : [id, dataset, one.kind === "vain" ? "vain" : ""]);
    }
  }
  const isCut = nodes.size > JOINING_ONLY;
  const kept = [...nodes.values()].filter((node) => !isCut || node.href || degree[node.id] > 1);
  const ids = new Set(kept.map((node) => node.id));
  const joined = edges.filter(([from, to]) => ids.has(from) && ids.has(to));
  const layers = layersOf([...ids], joined);
  return { nodes: Object.assign(kept.map((node) => ({ ...node, layer: layers.get(node.id) })), { isCut }), edges: joined };
}

function Lineage(props) {
  return h("div", { className: "spark-lineage" }, h("style", null, STYLE), props.taskId ? h(Task, props) : h(Dag, props));
}

// Airflow looks for the name of the app first, and several plugins may load at once.
globalThis.AirflowPlugin = globalThis.Lineage = Lineage;
export default Lineage;
