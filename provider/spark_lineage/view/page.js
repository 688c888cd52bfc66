// Draws the components of lineage.js on a page without React: what they use of it, and no more.
//
// Each change of a state draws all again as plain objects, and changes the document where it differs from them.
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const NAMES = { className: "class", htmlFor: "for" };
  let states = new Map(), drawn = new Map(), current, root, view, isDue = false;

  function createElement(type, properties, ...children) {
    const { key, ...props } = properties ?? {};
    return { type, key, props: children.length ? { ...props, children } : props };
  }

  /** What the component that is drawn has kept at this place among its hooks. */
  const kept = (made) => (current.hooks[current.at++] ??= made);

  function useState(first) {
    const state = kept({ value: first });
    const set = (value) => {
      state.value = value;
      if (!isDue) queueMicrotask(draw);
      isDue = true;
    };
    return [state.value, set];
  }

  function useMemo(make, inputs) {
    const memo = kept({});
    if (!memo.inputs?.every((input, at) => input === inputs[at])) Object.assign(memo, { inputs, value: make() });
    return memo.value;
  }

  /** The elements and texts of a tree, each with a path that no other has: components keep their hooks by it. */
  function flat(node, path) {
    if (Array.isArray(node)) return node.flatMap((child, at) => flat(child, `${path}/${child?.key ?? at}`));
    if (node === null || node === undefined || typeof node === "boolean") return [];
    if (typeof node !== "object") return [{ path, text: String(node) }];
    const { type, props } = node;
    if (typeof type !== "function") return [{ path, type, props, children: flat(props.children, path) }];
    const own = `${path}/${type.name}`, hooks = states.get(own) ?? [];
    drawn.set(own, hooks);
    current = { hooks, at: 0 };
    return flat(type(props), own);
  }

  /** Give an element the nodes of a list as its children: those that it has by the same path, and new ones. */
  function fill(parent, list) {
    const old = new Map([...parent.childNodes].map((node) => [node.item.path, node]));
    const nodes = list.map((item) => {
      const has = old.get(item.path);
      const node = has && has.item.type === item.type ? has : make(item, parent);
      if (item.type) {
        fill(node, item.children);
        assign(node, item.props);
      } else if (node.data !== item.text) node.data = item.text;
      return Object.assign(node, { item });
    });
    old.forEach((node) => nodes.includes(node) || node.remove());
    nodes.forEach((node, at) => node === parent.childNodes[at] || parent.insertBefore(node, parent.childNodes[at] ?? null));
  }

  function make({ type }, parent) {
    const space = type === "svg" ? SVG : parent.namespaceURI;
    return type ? document.createElementNS(space, type) : document.createTextNode("");
  }

  function assign(node, props) {
    const gone = Object.keys(node.item?.props ?? {}).filter((name) => !(name in props)).map((name) => [name, undefined]);
    for (const [name, value] of [...gone, ...Object.entries(props)]) {
      if (name === "children") continue;
      if (name === "ref") value.current = node;
      else if (name === "value") node.value = value;
      else if (name === "onChange") node.oninput = value;
      else if (name.startsWith("on")) node[name.toLowerCase()] = value ?? null;
      else if (name === "style")
        for (const [key, size] of Object.entries(value)) node.style[key] = key === "zoom" ? size : `${size}px`;
      else if (value === undefined || (value === false && !name.startsWith("aria-"))) node.removeAttribute(NAMES[name] ?? name);
      else node.setAttribute(NAMES[name] ?? name, value);
    }
  }

  function draw() {
    isDue = false;
    drawn = new Map();
    fill(root, flat(createElement(globalThis.AirflowPlugin, { view }), ""));
    states = drawn;
  }

  const useRef = (first) => useMemo(() => ({ current: first }), []);
  // Guard extends Component; useEffect looks up what only Airflow has.
  globalThis.React = { Component: class {}, createElement, useMemo, useRef, useState };
  addEventListener("DOMContentLoaded", () => {
    root = document.getElementById("lineage");
    view = JSON.parse(document.getElementById("view").text);
    draw();
  });
})();
