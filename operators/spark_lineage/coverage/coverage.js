// The page "Lineage coverage" of Airflow's UI: the Spark tasks that the user may read, by operator.
//
// Airflow imports it (`react_apps` of the plugin). React, the colours and the session are the page's own. The rows come
// from the app of the same plugin (`page.py`), by the function of `spark-lineage coverage`.

const { createElement: h, useEffect, useState } = globalThis.React;

const VERDICTS = ["none", "counted", "unknown", "whole"];
const TONES = { none: "red", counted: "orange", unknown: "blue", whole: "green" };
const SHOWN = 100;
const color = (name) => `var(--chakra-colors-${name})`;
const STYLE = `.spark-coverage {
  height: 100%; overflow: auto; padding: 16px; font-size: 14px; color: ${color("fg")};
  h2 { font-size: 18px; font-weight: 600; }
  p { margin: 6px 0; overflow-wrap: anywhere; }
  a { text-decoration: underline; color: ${color("fg-info")}; overflow-wrap: anywhere; }
  summary { cursor: pointer; padding: 8px 0; font-weight: 600; overflow-wrap: anywhere; }
  summary small { font-weight: 400; color: ${color("fg-muted")}; }
  details { border-top: 1px solid ${color("border")}; }
  ul { list-style: none; margin: 0 0 10px; }
  li { display: grid; grid-template-columns: minmax(14em, 2fr) 6em 5fr; gap: 2px 16px; padding: 4px 0;
    border-top: 1px solid ${color("border")}; }
  li span { overflow-wrap: anywhere; }
  .filters { display: flex; flex-wrap: wrap; gap: 8px; margin: 12px 0; }
  button { cursor: pointer; padding: 4px 12px; border-radius: 4px; border: 1px solid ${color("border-emphasized")}; }
  button[aria-pressed=true] { background: ${color("bg-emphasized")}; font-weight: 600; }
  :is(a, button, summary):focus-visible { outline: 2px solid ${color("fg-info")}; outline-offset: -2px; }
  ${VERDICTS.map((one) => `.${one} { color: ${color(`${TONES[one]}-fg`)}; font-weight: 600; }`).join("\n  ")}
  @media (max-width: 700px) { li { grid-template-columns: 1fr 6em; } li .why { grid-column: 1 / -1; } }
}`;

const many = (count, one) => `${count.toLocaleString()} ${one}${count === 1 ? "" : "s"}`;
const totals = (rows) => VERDICTS.map((one) => [one, rows.filter((row) => row.verdict === one).length]).filter(([, count]) => count);
const pageOf = ({ dag_id, task_id }) => `dags/${encodeURIComponent(dag_id)}/tasks/${encodeURIComponent(task_id)}`;

async function read() {
  // Airflow 3.1.0 keeps the token there, later ones in a cookie.
  const token = localStorage.getItem("token");
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const reply = await fetch(new URL("spark-lineage-coverage/tasks", document.baseURI), { headers });
  if (reply.ok) return reply.json();
  throw new Error(reply.status === 403 ? "you have no right to read DAGs" : `${reply.status} ${reply.statusText}`);
}

function Row({ row }) {
  return h("li", null,
    h("a", { href: new URL(pageOf(row), document.baseURI) }, `${row.dag_id}.${row.task_id}`),
    h("span", { className: row.verdict }, row.verdict),
    h("span", { className: "why" }, row.why));
}

function Group({ operator, rows, wanted }) {
  const [isWhole, setWhole] = useState(false);
  const shown = rows.filter((row) => wanted.includes(row.verdict));
  if (!shown.length) return null;
  const counts = totals(rows).map(([one, count]) => `${count.toLocaleString()} ${one}`).join(" · ");
  return h("details", { open: true },
    h("summary", null, `${operator} `, h("small", null, counts)),
    h("ul", null, shown.slice(0, isWhole ? undefined : SHOWN).map((row) => h(Row, { key: pageOf(row), row }))),
    shown.length > SHOWN && !isWhole &&
      h("p", null, h("button", { onClick: () => setWhole(true) }, `All ${many(shown.length, "task")}`)));
}

function Rows({ tasks }) {
  const lacking = VERDICTS.filter((one) => one !== "whole");
  const [wanted, setWanted] = useState(lacking);
  const groups = Map.groupBy(tasks, (row) => row.operator);
  const toggle = (one) => setWanted(wanted.includes(one) ? wanted.filter((each) => each !== one) : [...wanted, one]);
  const button = ([one, count]) =>
    h("button", { key: one, "aria-pressed": wanted.includes(one), onClick: () => toggle(one) },
      h("span", { className: one }, one), ` ${count.toLocaleString()}`);
  return h("div", null,
    h("p", { role: "status" }, tasks.length
      ? `${many(tasks.length, "task")} that run Spark, of ${many(groups.size, "operator")}.`
      : "No task that you may read runs Spark."),
    h("div", { className: "filters", role: "group", "aria-label": "verdicts that are shown" }, totals(tasks).map(button)),
    [...groups].map(([operator, rows]) => h(Group, { key: operator, operator, rows, wanted })));
}

function Coverage() {
  const [{ tasks, error }, setFound] = useState({});
  useEffect(() => { read().then(setFound, (problem) => setFound({ error: problem })); }, []);
  return h("div", { className: "spark-coverage" }, h("style", null, STYLE), h("h2", null, "Lineage coverage"),
    tasks ? h(Rows, { tasks })
      : h("p", { role: "status" }, error ? `The coverage cannot be read: ${error.message}.` : "Reading the tasks…"));
}

// Airflow looks for the name of the app first.
globalThis["Lineage coverage"] = Coverage;
export default Coverage;
