"use strict";
// The views of a report.  All text from the file becomes text nodes or attributes: nothing is parsed as HTML.
const data = JSON.parse(document.getElementById("data").textContent);
const main = document.getElementById("main"),
  nav = document.getElementById("views");
const tensors = data.tensors,
  roles = data.roles,
  types = data.types;

// ---- helpers ----

function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const key in attributes || {}) {
    if (key === "on") for (const event in attributes.on) node.addEventListener(event, attributes.on[event]);
    else if (attributes[key] !== undefined && attributes[key] !== false)
      node.setAttribute(key, attributes[key]);
  }
  node.append(...children);
  return node;
}
// A name as a terminal would show it.
const show = (name) =>
  name.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
const bdi = (name) => el("bdi", null, show(name));
const say = (text) => {
  document.getElementById("said").textContent = text;
};
const number = (x) => (typeof x === "string" ? Number(x) : x);
function short(x, digits = 3) {
  if (x === null || x === undefined) return "-";
  x = number(x);
  if (!isFinite(x)) return isNaN(x) ? "NaN" : "exact";
  if (x === 0) return "0";
  const size = Math.abs(x);
  return size >= 1e5 || size < 1e-3 ? x.toExponential(digits - 2) : String(Number(x.toPrecision(digits)));
}
const grouped = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, ",");
function size(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  for (; bytes >= 1024 && unit < 5; unit++) bytes /= 1024;
  return `${unit ? Number(bytes.toPrecision(3)) : bytes} ${units[unit]}`;
}
function median(list) {
  const sorted = list.slice().sort((a, b) => a - b),
    n = sorted.length;
  return n % 2 ? sorted[(n - 1) / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}
function section(id, title, question, ...children) {
  nav.append(el("a", { href: `#${id}` }, title));
  const node = el(
    "section",
    { id, "aria-labelledby": `${id}-title` },
    el("h2", { id: `${id}-title` }, question),
    ...children,
  );
  main.append(node);
  return node;
}
function select(label, options, change) {
  const node = el(
    "select",
    { on: { change: () => change(node.value) } },
    ...options.map(([value, text]) => el("option", { value }, text)),
  );
  return { node: el("label", null, label, node), select: node };
}
function canvas(kind, label, draw, attributes) {
  const node = el("canvas", { class: kind, role: "img", "aria-label": label, ...attributes });
  const paint = () => {
    const box = node.getBoundingClientRect();
    if (!box.width) return;
    node.width = Math.round(box.width * devicePixelRatio);
    node.height = Math.round(box.height * devicePixelRatio);
    const c = node.getContext("2d"),
      style = getComputedStyle(document.documentElement);
    c.scale(devicePixelRatio, devicePixelRatio);
    c.font = "12px system-ui, sans-serif";
    draw(c, box.width, box.height, (name) => style.getPropertyValue(`--${name}`).trim());
  };
  redraws.push(paint);
  return { node, paint };
}
const redraws = [];
const redraw = () => redraws.forEach((paint) => paint());
addEventListener("resize", redraw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

// A sequence from dark blue to yellow that colour-blind people can tell apart.
const steps = [
  [68, 1, 84],
  [59, 82, 139],
  [33, 145, 140],
  [94, 201, 98],
  [253, 231, 37],
];
function sequence(part) {
  const at = Math.max(0, Math.min(1, part)) * (steps.length - 1),
    i = Math.min(Math.floor(at), steps.length - 2);
  return `rgb(${steps[i].map((x, k) => Math.round(x + (steps[i + 1][k] - x) * (at - i))).join(",")})`;
}
const typeColours = ["#2f5fa8", "#a85b00", "#2d7a53", "#8a3f8f", "#6b6f00", "#9c2f4a", "#40606b", "#5c4a2e"];

// ---- figures ----

const figures = [{ key: "odd", title: "oddest figure" }]
  .concat(
    data.figures.map((f, i) => ({
      key: f.figure,
      title: f.title,
      log: f.log,
      share: f.share,
      floor: f.floor,
      index: i,
    })),
  )
  .concat(
    types.map((t, i) => ({
      key: `type${i}`,
      title: `SQNR as ${t.type}, dB`,
      floor: data.sqnr_floor,
      index: data.figures.length + i,
      low: true,
      type: i,
    })),
  );
if (data.difference)
  figures.push({
    key: "difference",
    title: `SQNR against ${data.difference.against}, dB`,
    floor: 1,
    low: true,
  });

function figureOf(t, f) {
  const absmax = Math.max(Math.abs(number(t.min)), Math.abs(number(t.max)));
  switch (f.key) {
    case "odd":
      return t.oddity === undefined ? null : t.oddity;
    case "std":
      return number(t.std);
    case "absmax":
      return absmax;
    case "peak":
      return number(t.std) > 0 ? absmax / number(t.std) : null;
    case "mean":
      return number(t.mean);
    case "zeros":
      return t.zeros / t.values;
    case "subnormals":
      return (t.subnormals || 0) / t.values;
    case "difference":
      return t.difference && t.difference.sqnr !== undefined ? number(t.difference.sqnr) : null;
    default:
      return t.types && t.types[f.type] ? number(t.types[f.type][0]) : null;
  }
}
// These are marked whatever the others of the role are like: no distance from a median belongs to them.
const isBroken = (odd) => odd === "NaN" || odd === "infinity";
const oddness = (t) => (isBroken(t.odd) ? t.odd : `${t.odd}, ${short(t.oddity)} median deviations`);
const known = (x) => x !== null && x !== undefined && !isNaN(x);

// Cells of the matrix: tensors of one role and layer together.
function makeCells() {
  const cells = new Map();
  const at = (role, layer) => {
    const key = `${role} ${layer === undefined ? "-" : layer}`;
    if (!cells.has(key)) cells.set(key, { role, layer, list: [], marked: 0, oddity: null, odd: "" });
    return cells.get(key);
  };
  tensors.forEach((t, i) => {
    const cell = at(t.role, t.layer);
    cell.list.push(i);
    cell.marked += t.marked ? 1 : 0;
    if (t.oddity !== undefined && !(cell.oddity >= t.oddity)) [cell.oddity, cell.odd] = [t.oddity, t.odd];
  });
  for (const c of data.cells || [])
    Object.assign(at(c.role, c.layer), {
      marked: c.marked,
      oddity: c.oddity,
      odd: c.odd,
      medians: c.medians,
      tensors: c.tensors,
    });
  return [...cells.values()];
}
const cells = makeCells();
function cellValue(cell, f) {
  if (f.key === "odd") return cell.oddity;
  if (cell.medians && f.index !== undefined) return number(cell.medians[f.index]);
  const list = cell.list.map((i) => figureOf(tensors[i], f)).filter(known);
  return list.length ? median(list) : null;
}
// How far each value of a role is from their median, as the marks measure it.
function deviations(row, f) {
  const scale = (x) => (f.log ? Math.log2(x) : x);
  const values = row
    .map((cell) => (cell ? cellValue(cell, f) : null))
    .map((x) => (known(x) ? scale(x) : NaN));
  const finite = values.filter(isFinite);
  if (f.key === "odd" || finite.length < 5) return values.map(() => 0);
  const middle = median(finite);
  let floor = f.floor;
  if (f.key === "mean")
    floor *= median(
      tensors
        .filter((t) => row.some((c) => c && c.role === t.role) && t.std !== undefined)
        .map((t) => Math.hypot(number(t.mean), number(t.std)))
        .concat(0.0),
    );
  const unit = Math.max(median(finite.map((x) => Math.abs(x - middle))), floor) || 1;
  return values.map((x) => (isNaN(x) ? 0 : Math.max(-99, Math.min(99, (x - middle) / unit))));
}

// ---- where are the bytes? ----

function makeTree() {
  const root = { name: "", children: new Map(), bytes: 0 };
  const layersOf = roles.map(() => new Set());
  tensors.forEach((t) => layersOf[t.role].add(t.layer));
  roles.forEach((role, i) => {
    let node = root;
    const layers = layersOf[i].size;
    let isFirst = true;
    for (const part of role.role.split(/[./]/)) {
      if (!node.children.has(part)) node.children.set(part, { name: part, children: new Map(), bytes: 0 });
      node.bytes += role.bytes;
      node = node.children.get(part);
      if (part === "*" && isFirst) [node.times, isFirst] = [Math.max(node.times || 0, layers), false];
    }
    node.bytes += role.bytes;
    node.role = node.children.size ? node.role : i;
    node.roles = (node.roles || []).concat(i);
  });
  return fold(root);
}
// A node with a single child is one with it.
function fold(node) {
  let children = [...node.children.values()].map(fold);
  if (node.roles && children.length)
    children.push({ name: "(itself)", children: [], bytes: 0, role: node.roles[0] });
  if (children.length === 1)
    return {
      ...children[0],
      name: node.name ? `${node.name}.${children[0].name}` : children[0].name,
      times: node.times || children[0].times,
    };
  return {
    name: node.name,
    times: node.times,
    bytes: node.bytes,
    role: node.role,
    children: children.sort((a, b) => b.bytes - a.bytes),
  };
}
// Squarified: rows of tiles whose sides are as equal as can be.
function squarify(items, x, y, w, h, put) {
  const total = items.reduce((sum, item) => sum + item.bytes, 0);
  if (!total || w <= 0 || h <= 0) return;
  let rest = items.filter((item) => item.bytes > 0),
    left = total;
  while (rest.length) {
    const side = Math.min(w, h),
      area = (w * h) / left;
    let n = 0,
      sum = 0,
      best = Infinity;
    while (n < rest.length) {
      const next = sum + rest[n].bytes,
        thick = (next * area) / side;
      const worst = Math.max(
        ...[rest[0], rest[n]].map((item) => {
          const long = (item.bytes * area) / thick;
          return Math.max(long / thick, thick / long);
        }),
      );
      if (worst > best) break;
      [best, sum] = [worst, next];
      n++;
    }
    const thick = (sum * area) / side;
    let at = 0;
    for (const item of rest.slice(0, n)) {
      const long = (item.bytes * area) / thick;
      if (w >= h) put(item, x, y + at, thick, long);
      else put(item, x + at, y, long, thick);
      at += long;
    }
    if (w >= h) [x, w] = [x + thick, w - thick];
    else [y, h] = [y + thick, h - thick];
    rest = rest.slice(n);
    left -= sum;
  }
}
function treemap() {
  const byRole = roles.map(() => []);
  tensors.forEach((t) => byRole[t.role].push(t));
  const kinds = [...new Set(tensors.map((t) => t.type))];
  const box = el("div", {
    class: "tree",
    role: "img",
    "aria-label": "Treemap of stored bytes; the list below has the same numbers",
  });
  const key = el("ul", { class: "key" });
  let by = "type";
  function look(i) {
    const list = byRole[i],
      role = roles[i],
      bits = role.values ? (8 * role.bytes) / role.values : 0;
    if (by === "bits") return [sequence(1 - bits / 40), `${short(bits)} bits per value`];
    if (by.startsWith("type") && by !== "type") {
      const values = list
        .map((t) =>
          figureOf(
            t,
            figures.find((f) => f.key === by),
          ),
        )
        .filter(known);
      return values.length
        ? [sequence(Math.min(...values) / 60), `at least ${short(Math.min(...values))} dB`]
        : ["#777", "not measured"];
    }
    const kind = list.length ? list[0].type : "";
    return [typeColours[kinds.indexOf(kind) % typeColours.length] || "#777", kind];
  }
  // In shares of the width, so that it fits on paper too.
  function place(node, x, y, w, h) {
    const share = (length) => `${(100 * length) / box.clientWidth}%`;
    Object.assign(node.style, { left: share(x), top: `${y}px`, width: share(w), height: `${h}px` });
    box.append(node);
  }
  function draw(node, x, y, w, h, depth) {
    squarify(node.children, x, y, w, h, (item, left, top, wide, high) => {
      const isGroup = item.children.length && depth < 3 && wide > 60 && high > 44;
      const name = show(item.name.replace(/^\*\./, "") || "*"),
        times = item.times && !data.left_out ? ` x ${item.times}` : "",
        text = `${name}${times}: ${size(item.bytes)}`;
      if (isGroup) {
        place(el("div", { class: "group", title: text }, text), left, top, wide, high);
        draw(item, left + 2, top + 20, wide - 4, high - 22, depth + 1);
        return;
      }
      const [colour, meaning] =
        item.role === undefined ? ["#666", `${item.children.length} parts`] : look(item.role);
      const leaf = el(
        "div",
        { class: "leaf", title: `${text}, ${meaning}` },
        wide > 36 && high > 16 ? text : "",
      );
      leaf.style.background = colour;
      leaf.style.color = by === "type" ? "#fff" : "#000";
      if (by !== "type") leaf.style.textShadow = "0 0 3px #fff, 0 0 3px #fff, 0 0 2px #fff";
      place(leaf, left, top, wide, high);
    });
  }
  const tree = makeTree();
  function paint() {
    box.replaceChildren();
    const wide = box.clientWidth,
      high = box.clientHeight;
    if (tree.children.length) draw(tree, 0, 0, wide, high, 0);
    else draw({ children: [tree] }, 0, 0, wide, high, 0);
    key.replaceChildren(
      ...(by === "type"
        ? kinds.slice(0, 8).map((kind, i) => [typeColours[i], kind])
        : by === "bits"
          ? [4, 8, 16, 32].map((bits) => [sequence(1 - bits / 40), `${bits} bits`])
          : [10, 20, 30, 40, 50].map((db) => [sequence(db / 60), `${db} dB`])
      ).map(([colour, text]) => {
        const swatch = el("span");
        swatch.style.background = colour;
        return el("li", null, swatch, text);
      }),
    );
  }
  const choice = select(
    "Colour",
    [["type", "type"], ["bits", "bits per value"], ...types.map((t, i) => [`type${i}`, `SQNR as ${t.type}`])],
    (value) => {
      by = value;
      paint();
    },
  );
  const rows = roles
    .map((role, i) => [role, i])
    .sort((a, b) => b[0].bytes - a[0].bytes)
    .slice(0, 200);
  section(
    "bytes",
    "Bytes",
    "Where are the bytes?",
    el("div", { class: "controls" }, choice.node),
    box,
    key,
    el(
      "details",
      null,
      el("summary", null, "The same as a list"),
      el(
        "div",
        { class: "scroll", tabindex: 0, role: "region", "aria-label": "Bytes by role" },
        el(
          "table",
          null,
          el("caption", null, "Stored bytes by role; * stands for a number"),
          el(
            "thead",
            null,
            el("tr", null, ...["role", "tensors", "size", "share"].map((h) => el("th", { scope: "col" }, h))),
          ),
          el(
            "tbody",
            null,
            ...rows.map(([role]) =>
              el(
                "tr",
                null,
                el("th", { scope: "row" }, bdi(role.role)),
                el("td", null, grouped(role.tensors)),
                el("td", null, size(role.bytes)),
                el("td", null, `${short((100 * role.bytes) / (data.summary.bytes || 1))}%`),
              ),
            ),
          ),
        ),
      ),
    ),
  );
  redraws.push(paint);
}

// ---- which cell is odd? ----

const MOST_CELLS = 40000; // of the matrix: browsers take seconds for more

function matrix() {
  const layers = [...new Set(cells.map((c) => c.layer))].filter(known).sort((a, b) => a - b);
  if (cells.some((c) => !known(c.layer))) layers.unshift(undefined);
  const column = new Map(layers.map((layer, k) => [layer, k]));
  const most = Math.max(1, Math.floor(MOST_CELLS / layers.length));
  const listed = roles.map((role, i) => i);
  if (listed.length > most) {
    listed.sort((a, b) => roles[b].marked - roles[a].marked || a - b).length = most;
    listed.sort((a, b) => a - b);
  }
  const rows = new Map(listed.map((i) => [i, layers.map(() => null)]));
  cells.forEach((c) => {
    if (rows.has(c.role)) rows.get(c.role)[column.get(c.layer)] = c;
  });
  const host = el("div", {
    class: "scroll",
    tabindex: 0,
    role: "region",
    "aria-label": "Matrix of layers and roles",
  });
  const note = el("p", { class: "note" });
  let current = null;
  function focus(td) {
    if (!td) return;
    if (current) current.tabIndex = -1;
    current = td;
    td.tabIndex = 0;
    td.focus();
  }
  function move(event, td) {
    const tr = td.parentNode,
      column = [...tr.children].indexOf(td);
    const way = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (!way) return;
    event.preventDefault();
    let row = tr,
      at = column;
    for (;;) {
      at += way[1];
      if (way[0] < 0) row = row.previousElementSibling;
      if (way[0] > 0) row = row.nextElementSibling;
      const next = row && at > 0 ? row.children[at] : null;
      if (!next) return;
      if (!next.classList.contains("empty")) {
        focus(next);
        return;
      }
    }
  }
  function cellNode(cell, f, away, role, layer) {
    if (!cell) return el("td", { class: "empty" });
    const x = cellValue(cell, f),
      count = cell.tensors || cell.list.length;
    const distance = known(x) && f.key === "odd" ? x.toFixed(x < 99.5 ? 1 : 0) : short(x);
    const plain = f.key === "odd" && isBroken(cell.odd) ? cell.odd : distance;
    const text = f.share && known(x) ? `${short(100 * x)}%` : plain;
    const bad = cell.marked > 0;
    const among = cell.list.map((i) => figureOf(tensors[i], f)).filter(known);
    const extremes =
      among.length > 1 ? `, from ${short(Math.min(...among))} to ${short(Math.max(...among))}` : "";
    const oddest = cell.list.slice().sort((a, b) => (tensors[b].oddity || 0) - (tensors[a].oddity || 0))[0];
    const where = `${show(role.role)}${layer === undefined ? "" : `, layer ${layer}`}`;
    const td = el(
      "td",
      {
        class: bad ? "marked" : undefined,
        tabindex: -1,
        title:
          `${where}: ${f.title} ${text}${count > 1 ? `, ${f.key === "odd" ? "largest" : "median"} of ${count} tensors${extremes}` : ""}` +
          `${cell.odd ? `; oddest: ${oddness(cell)}` : ""}${bad ? "; marked" : ""}`,
      },
      bad ? `! ${text}` : text,
      ...(bad && f.key === "odd" && !isBroken(cell.odd) ? [el("small", null, cell.odd)] : []),
    );
    const strong = f.key === "odd" ? Math.min((number(x) || 0) / 8, 1) : Math.min(Math.abs(away) / 8, 1);
    if (strong > 0.1)
      td.style.backgroundColor = `rgba(var(--${away < 0 ? "below" : "above"}), ${0.55 * strong})`;
    td.addEventListener("keydown", (event) => {
      if ((event.key === "Enter" || event.key === " ") && cell.list.length) {
        event.preventDefault();
        openTensor(oddest);
      } else move(event, td);
    });
    td.addEventListener("click", () => {
      focus(td);
      if (cell.list.length) openTensor(oddest, true);
    });
    return td;
  }
  function draw(key) {
    const f = figures.find((one) => one.key === key);
    const body = listed.map((i) => {
      const row = rows.get(i);
      const away = deviations(row, f);
      return el(
        "tr",
        null,
        el("th", { scope: "row", title: show(roles[i].role) }, bdi(roles[i].role)),
        ...row.map((cell, k) => cellNode(cell, f, away[k], roles[i], layers[k])),
      );
    });
    host.replaceChildren(
      el(
        "table",
        { class: "matrix" },
        el("caption", { class: "hidden" }, `${f.title}, by role and layer`),
        el(
          "thead",
          null,
          el(
            "tr",
            null,
            el("th", { scope: "col" }, "role \\ layer"),
            ...layers.map((layer) =>
              el("th", { scope: "col" }, layer === undefined ? "none" : String(layer)),
            ),
          ),
        ),
        el("tbody", null, ...body),
      ),
    );
    current = host.querySelector("td.marked") || host.querySelector("td:not(.empty)");
    if (current) current.tabIndex = 0;
    note.textContent =
      f.key === "odd"
        ? `Each number says how far the oddest figure of a tensor is from the median of its role, in median deviations; from ${short(data.mark_limit)} on it is marked with "!" and the figure. NaN and infinity always are.`
        : "Orange is above the median of the row, blue is below; the stronger, the more median deviations.";
  }
  const choice = select(
    "Figure",
    figures.map((f) => [f.key, f.title]),
    draw,
  );
  section(
    "matrix",
    "Layers",
    "How does a figure run through the layers, and which tensor is odd?",
    el("div", { class: "controls" }, choice.node),
    note,
    host,
    listed.length < roles.length
      ? el("p", { class: "warning" }, `Of ${grouped(roles.length)} roles ${grouped(listed.length)} are shown.`)
      : "",
    el("p", { class: "note" }, "Arrow keys move from cell to cell; Enter opens a tensor."),
  );
  draw("odd");
}

// ---- which distributions are odd? ----

const inOrder = tensors
  .map((t, i) => i)
  .filter((i) => tensors[i].histogram)
  .sort(
    (a, b) => tensors[a].role - tensors[b].role || (tensors[a].layer || 0) - (tensors[b].layer || 0) || a - b,
  );
function bars(t) {
  const blocks = "▁▂▃▄▅▆▇█",
    most = Math.max(...t.histogram);
  return t.histogram.map((x) => (x < 0 ? " " : blocks[Math.round(7 * 2 ** (x - most))])).join("");
}
function strip() {
  if (!inOrder.length) return;
  const low = Math.min(...inOrder.map((i) => tensors[i].first));
  const high = Math.max(...inOrder.map((i) => tensors[i].first + tensors[i].histogram.length));
  const left = 44,
    bottom = 8;
  const text = el("p", { "aria-live": "polite" }, "Point at a column, or use the arrow keys.");
  let range = "",
    cursor = 0;
  const y = (exponent, h) => ((high - exponent) / (high - low)) * (h - bottom) + 2;
  const picture = canvas(
    "strip",
    `Histograms of ${inOrder.length} tensors by powers of two, sorted by role and layer`,
    (c, w, h, colour) => {
      const wide = (w - left) / inOrder.length;
      inOrder.forEach((i, k) => {
        const t = tensors[i],
          most = Math.max(...t.histogram);
        t.histogram.forEach((x, bin) => {
          if (x < 0) return;
          c.fillStyle = sequence(1 - (most - x) / 24);
          const top = y(t.first + bin + 1, h);
          c.fillRect(left + k * wide, top, Math.max(wide, 0.5) + 0.3, y(t.first + bin, h) - top + 0.3);
        });
        if (k && tensors[inOrder[k - 1]].role !== t.role) {
          c.fillStyle = colour("paper");
          c.fillRect(left + k * wide - 0.5, 0, 1.5, h);
        }
        if (t.marked) {
          c.fillStyle = colour("mark");
          c.fillRect(left + k * wide - 1, h - bottom + 2, Math.max(wide + 2, 4), bottom - 2);
        }
      });
      c.fillStyle = colour("ink");
      const step = Math.max(1, Math.ceil((high - low) / 12));
      for (let e = low; e <= high; e += step)
        c.fillText(`2^${e}`, 2, Math.min(h - 2, Math.max(10, y(e, h) + 4)));
      const limit = data.ranges.find((r) => r.type === range);
      if (limit) {
        c.strokeStyle = colour("mark");
        c.setLineDash([6, 4]);
        for (const [x, name] of [
          [limit.largest, "largest"],
          [limit.smallest, "smallest"],
        ]) {
          const at = y(Math.log2(x), h);
          if (at < 0 || at > h) continue;
          c.beginPath();
          c.moveTo(left, at);
          c.lineTo(w, at);
          c.stroke();
          c.fillStyle = colour("paper");
          c.fillRect(left + 4, at - 15, c.measureText(`${name} ${range}`).width + 8, 14);
          c.fillStyle = colour("mark");
          c.fillText(`${name} ${range}`, left + 8, at - 4);
        }
        c.setLineDash([]);
      }
      c.strokeStyle = colour("ink");
      c.strokeRect(left + cursor * wide, 0.5, Math.max(wide, 2), h - 1);
    },
    { tabindex: 0 },
  );
  function point(k) {
    cursor = Math.max(0, Math.min(inOrder.length - 1, k));
    const t = tensors[inOrder[cursor]];
    text.replaceChildren(
      bdi(t.name),
      ` 2^${t.first} `,
      el("span", { class: "spark", "aria-hidden": "true" }, bars(t)),
      ` 2^${t.first + t.histogram.length}${t.marked ? `, marked: ${t.odd}` : ""}`,
    );
    picture.paint();
  }
  picture.node.addEventListener("mousemove", (event) => {
    const box = picture.node.getBoundingClientRect();
    point(Math.floor(((event.clientX - box.left - left) / (box.width - left)) * inOrder.length));
  });
  picture.node.addEventListener("click", () => openTensor(inOrder[cursor], true));
  picture.node.addEventListener("keydown", (event) => {
    if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      event.preventDefault();
      point(cursor + (event.key === "ArrowLeft" ? -1 : 1));
    }
    if (event.key === "Enter") openTensor(inOrder[cursor]);
  });
  const choice = select(
    "Range of",
    [["", "no type"], ...data.ranges.map((r) => [r.type, r.type])],
    (value) => {
      range = value;
      picture.paint();
    },
  );
  section(
    "histograms",
    "Histograms",
    "Which distributions are odd, and where does a type's range cut?",
    el("div", { class: "controls" }, choice.node),
    el(
      "p",
      { class: "note" },
      "One column a tensor, sorted by role and layer; one row a power of two, brighter where more values are; " +
        "a mark below a column stands for an odd tensor.",
    ),
    picture.node,
    text,
  );
}

// ---- what would a smaller type cost? ----

// What a shell glob matches, as convert does it; "*" may be anything.  Not a regular expression: names with many
// stars would take it for ever.
function globMatch(glob, name) {
  let g = 0,
    n = 0,
    star = -1,
    from = 0;
  while (n < name.length) {
    const isPlain = glob[g] === "\\" && g + 1 < glob.length;
    const wants = glob[isPlain ? g + 1 : g];
    if (!isPlain && wants === "*") [star, from] = [g++, n];
    else if (g < glob.length && ((!isPlain && wants === "?") || wants === name[n])) {
      g += isPlain ? 2 : 1;
      n++;
    } else if (star >= 0) [g, n] = [star + 1, ++from];
    else return false;
  }
  while (glob[g] === "*") g++;
  return g === glob.length;
}
// What a rule can say exactly is escaped, the rest becomes a star.
const asGlob = (text) =>
  text
    .replace(/[\\?[]/g, "\\$&")
    .replace(/[^\x21-\x7e]+|[,='!]+|^re:/g, "*")
    .replace(/\*+/g, "*");
const quoted = (text) => (/^[\w./-]+$/.test(text) ? text : `'${text.replace(/'/g, "'\\''")}'`);

function wanted(t, least) {
  let best = null;
  if (t.shape.length < 2 || t.form || t.name_bytes || t.name.length > 200 || !t.types) return null;
  t.types.forEach((rating, k) => {
    if (
      rating &&
      number(rating[0]) >= least &&
      rating[1] < t.bytes &&
      (best === null || rating[1] < t.types[best][1])
    )
      best = k;
  });
  return best;
}
// Rules, the first match of which wins, and what they make of each tensor.
function makeRecipe(least) {
  const want = tensors.map((t) => wanted(t, least));
  const typeOf = (i) => (want[i] === null ? (tensors[i].form ? null : tensors[i].type) : types[want[i]].type);
  let exact = [],
    wide = [];
  roles.forEach((role, r) => {
    const votes = new Map();
    tensors.forEach((t, i) => {
      if (t.role === r && want[i] !== null) votes.set(want[i], (votes.get(want[i]) || 0) + 1);
    });
    if (!votes.size || role.name_bytes) return;
    const [type] = [...votes].sort((a, b) => b[1] - a[1] || a[0] - b[0])[0];
    wide.push({ glob: asGlob(role.role), type: types[type].type, makes: type });
  });
  wide.sort((a, b) => b.glob.length - a.glob.length);
  const find = (t) => exact.concat(wide).find((rule) => globMatch(rule.glob, t.name));
  for (let round = 0; round < 4; round++) {
    let wrong = false;
    tensors.forEach((t, i) => {
      const rule = find(t),
        makes = rule ? rule.makes : null;
      if (makes === want[i]) return;
      wrong = true;
      const glob = asGlob(t.name);
      const other = tensors.some((o, k) => k !== i && want[k] !== want[i] && globMatch(glob, o.name));
      if (typeOf(i) !== null && !t.name_bytes && !other && !exact.some((e) => e.glob === glob))
        exact.push({ glob, type: typeOf(i), makes: want[i] });
      else if (rule) {
        exact = exact.filter((e) => e !== rule);
        wide = wide.filter((e) => e !== rule);
        tensors.forEach((o, k) => {
          if (globMatch(rule.glob, o.name)) want[k] = null;
        });
      } else want[i] = null;
    });
    if (!wrong) break;
  }
  let bytes = 0,
    cast = 0,
    lowest = Infinity,
    at = null;
  tensors.forEach((t, i) => {
    const rule = find(t),
      made = rule && rule.makes !== null ? t.types[rule.makes] : null;
    bytes += made ? made[1] : t.bytes;
    if (!made) return;
    cast++;
    if (number(made[0]) < lowest) [lowest, at] = [number(made[0]), t.name];
  });
  return { rules: exact.concat(wide), bytes, cast, lowest, at };
}
function typesView() {
  const dots = [];
  tensors.forEach((t, i) =>
    (t.types || []).forEach((rating, k) => {
      if (rating && isFinite(number(rating[0])))
        dots.push({ i, k, bits: (8 * rating[1]) / t.values, db: number(rating[0]) });
    }),
  );
  if (!dots.length || data.left_out) {
    if (types.length && data.left_out)
      section(
        "types",
        "Types",
        "What would a smaller type cost?",
        el(
          "p",
          null,
          "This file has too many tensors for a recipe: see tenon compare-types, or choose some with --only.",
        ),
      );
    return;
  }
  const bits = dots.map((d) => d.bits),
    dbs = dots.map((d) => d.db);
  const lowBits = Math.max(0, Math.min(...bits) - 0.5),
    highBits = Math.min(Math.max(...bits), 40) + 0.5;
  const lowDb = Math.floor(Math.min(...dbs) - 1),
    highDb = Math.ceil(Math.max(...dbs) + 1);
  let least = Math.round(median(dbs));
  const left = 50,
    bottom = 34;
  const picture = canvas(
    "scatter",
    "SQNR over bits per value, one dot a tensor and type; the table of the summary has the sums",
    (c, w, h, colour) => {
      const x = (b) => left + ((b - lowBits) / (highBits - lowBits)) * (w - left - 12);
      const y = (db) => 10 + ((highDb - db) / (highDb - lowDb)) * (h - bottom - 14);
      c.strokeStyle = colour("line");
      c.fillStyle = colour("ink");
      for (let db = Math.ceil(lowDb / 5) * 5; db <= highDb; db += 5) {
        c.beginPath();
        c.moveTo(left, y(db));
        c.lineTo(w, y(db));
        c.stroke();
        c.fillText(`${db} dB`, 6, y(db) + 4);
      }
      for (let b = Math.ceil(lowBits); b <= highBits; b += highBits - lowBits > 12 ? 4 : 1)
        c.fillText(b, x(b) - 3, h - 18);
      c.fillText("bits per value", left, h - 4);
      dots.forEach((d) => {
        const jitter = ((d.i * 2654435761) % 1000) / 1000 - 0.5;
        c.fillStyle = typeColours[d.k % typeColours.length];
        c.globalAlpha = d.db >= least ? 0.85 : 0.25;
        c.beginPath();
        c.arc(Math.min(x(d.bits) + 8 * jitter, w - 6), y(d.db), tensors[d.i].marked ? 5 : 3, 0, 7);
        c.fill();
      });
      c.globalAlpha = 1;
      c.strokeStyle = colour("mark");
      c.beginPath();
      c.moveTo(left, y(least));
      c.lineTo(w, y(least));
      c.stroke();
    },
  );
  const result = el("p", { id: "result", "aria-live": "polite" });
  const recipe = el("textarea", {
    id: "recipe",
    readonly: "",
    "aria-label": "Recipe: a command to copy",
    spellcheck: "false",
  });
  const slider = el("input", {
    type: "range",
    id: "least",
    min: lowDb,
    max: highDb,
    step: 0.5,
    value: least,
    on: { input: () => set(Number(slider.value)) },
  });
  const shown = el("output", { for: "least" });
  function set(value) {
    least = value;
    const r = makeRecipe(least),
      all = data.summary.bytes;
    shown.textContent = `${least} dB`;
    slider.setAttribute("aria-valuetext", `${least} dB`);
    result.replaceChildren(
      `${grouped(r.cast)} of ${grouped(tensors.length)} tensors get a smaller type. All together take ${size(r.bytes)} ` +
        `(${grouped(r.bytes)} bytes) instead of ${size(all)}: ${short((100 * r.bytes) / (all || 1))}%.`,
      ...(r.at ? [` The lowest SQNR is ${r.lowest.toFixed(2)} dB, of `, bdi(r.at), "."] : []),
    );
    result.dataset.bytes = r.bytes;
    result.dataset.sqnr = r.lowest;
    recipe.value = r.rules.length
      ? [
          `tenon convert ${quoted(data.file)} out.zt`,
          ...r.rules.map((rule) => `  --cast '${rule.glob}=${rule.type}'`),
        ].join(" \\\n")
      : "# no tensor would get a smaller type";
    picture.paint();
  }
  const copy = el(
    "button",
    { type: "button", on: { click: () => copyText(recipe.value, recipe) } },
    "Copy the recipe",
  );
  const legend = el(
    "ul",
    { class: "key" },
    ...types.map((t, k) => {
      const swatch = el("span");
      swatch.style.background = typeColours[k % typeColours.length];
      return el("li", null, swatch, `${t.type}: ${short(t.bits)} bits, ${short(t.sqnr)} dB`);
    }),
  );
  section(
    "types",
    "Types",
    "What would a smaller type cost, and which tensors should stay?",
    picture.node,
    legend,
    el("div", { class: "controls" }, el("label", null, "At least", slider, shown)),
    result,
    el(
      "p",
      { class: "note" },
      "Each tensor gets the smallest type that keeps this signal to quantization noise ratio. " +
        "Vectors, tensors with NaN or infinity, and those that no type fits stay as they are.",
    ),
    recipe,
    el("div", { class: "controls" }, copy),
  );
  set(least);
}
function copyText(text, area) {
  const done = () => say("Copied.");
  if (navigator.clipboard && isSecureContext)
    navigator.clipboard.writeText(text).then(done, () => area && area.select());
  else if (area) {
    area.select();
    document.execCommand("copy");
    done();
  }
}

// ---- what has changed? ----

function difference() {
  const d = data.difference;
  if (!d) return;
  const changed = tensors.map((t, i) => [t, i]).filter(([t]) => t.difference);
  const what = (words) =>
    words
      .map((w) => ({ only_here: "only in this file", dtype: "type", unread: "not compared" })[w] || w)
      .join(", ");
  section(
    "difference",
    "Difference",
    `What is different from ${show(d.against)}?`,
    el(
      "p",
      null,
      `${grouped(d.changed)} changed, ${grouped(d.only_here)} only in this file, ${grouped(d.only_there)} only in the other` +
        `${d.metadata ? "; the metadata of the files differs" : ""}.`,
    ),
    changed.length
      ? el(
          "div",
          { class: "scroll", tabindex: 0, role: "region", "aria-label": "Changed tensors" },
          el(
            "table",
            null,
            el("caption", null, "Changed tensors"),
            el(
              "thead",
              null,
              el(
                "tr",
                null,
                ...["tensor", "what", "values", "largest difference", "SQNR, dB"].map((h) =>
                  el("th", { scope: "col" }, h),
                ),
              ),
            ),
            el(
              "tbody",
              null,
              ...changed.map(([t, i]) =>
                el(
                  "tr",
                  { class: "changed" },
                  el(
                    "th",
                    { scope: "row" },
                    el("button", { type: "button", on: { click: () => openTensor(i, true) } }, bdi(t.name)),
                  ),
                  el("td", null, what(t.difference.what)),
                  el(
                    "td",
                    null,
                    t.difference.elements
                      ? `${short((100 * t.difference.differing) / t.difference.elements)}%`
                      : "-",
                  ),
                  el("td", null, short(t.difference.max_abs)),
                  el("td", null, short(t.difference.sqnr)),
                ),
              ),
            ),
          ),
        )
      : "",
    d.names_only_there.length
      ? el(
          "details",
          null,
          el("summary", null, "Only in the other file"),
          el("ul", null, ...d.names_only_there.map((name) => el("li", null, bdi(name)))),
        )
      : "",
  );
}

// ---- everything about each ----

function tableView() {
  const columns = [
    ["name", (t) => t.name, true],
    ["type", (t) => t.type, true],
    ["shape", (t) => t.shape.join("x"), true],
    ["bytes", (t) => t.bytes],
    ["oddity", (t) => t.oddity],
    ["std", (t) => number(t.std)],
    ["mean", (t) => number(t.mean)],
    ["min", (t) => number(t.min)],
    ["max", (t) => number(t.max)],
    ["zeros", (t) => t.zeros],
    ["NaN", (t) => t.nans || 0],
    ...types.map((type, k) => [
      `${type.type}, dB`,
      (t) => (t.types && t.types[k] ? number(t.types[k][0]) : undefined),
    ]),
  ];
  let key = -1,
    down = false,
    glob = "";
  const body = el("tbody"),
    count = el("span", { role: "status" });
  const list = () => {
    const pattern = glob.includes("*") || glob.includes("?") ? glob : `*${glob}*`;
    const found = tensors
      .map((t, i) => i)
      .filter((i) => !glob || globMatch(pattern.replace(/[\\[]/g, "\\$&"), tensors[i].name));
    if (key < 0) return found;
    const value = columns[key][1];
    return found.sort((a, b) => {
      const x = value(tensors[a]),
        y = value(tensors[b]);
      if (!known(x) || !known(y)) return known(y) - known(x) || a - b;
      const order = (x > y) - (x < y) || a - b;
      return down ? -order : order;
    });
  };
  const way = () => (down ? "descending" : "ascending");
  const cellText = (t, title, value, isText) => {
    if (isText) return show(String(value(t)));
    return title === "bytes" ? size(t.bytes) : short(value(t));
  };
  const heads = columns.map(([title], i) =>
    el(
      "th",
      { scope: "col", "aria-sort": "none" },
      el(
        "button",
        {
          type: "button",
          on: {
            click: () => {
              down = key === i ? !down : i > 2;
              key = i;
              draw();
            },
          },
        },
        title,
      ),
    ),
  );
  function draw() {
    const found = list();
    heads.forEach((th, i) => th.setAttribute("aria-sort", i === key ? way() : "none"));
    count.textContent = `${grouped(found.length)} of ${grouped(data.summary.tensors)} tensors`;
    body.replaceChildren(
      ...found.map((i) => {
        const t = tensors[i];
        return el(
          "tr",
          null,
          el(
            "th",
            { scope: "row" },
            el(
              "button",
              { type: "button", on: { click: () => openTensor(i, true) } },
              t.marked ? "! " : "",
              bdi(t.name),
            ),
          ),
          ...columns
            .slice(1)
            .map(([title, value, isText]) => el("td", null, cellText(t, title, value, isText))),
          el("td", { class: "spark" }, t.histogram ? el("span", { "aria-hidden": "true" }, bars(t)) : ""),
        );
      }),
    );
  }
  const filter = el("input", {
    type: "search",
    on: {
      input: () => {
        glob = filter.value;
        draw();
      },
    },
  });
  const tsv = () =>
    [
      columns.map((c) => c[0]).join("\t"),
      ...list().map((i) =>
        columns
          .map((c) => {
            const x = c[1](tensors[i]);
            return x === undefined ? "" : show(String(x));
          })
          .join("\t"),
      ),
    ].join("\n");
  const area = el("textarea", {
    class: "hidden",
    "aria-label": "The table as text",
    tabindex: -1,
    readonly: "",
  });
  section(
    "table",
    "Table",
    "What is known about each tensor?",
    data.left_out
      ? el(
          "p",
          { class: "warning" },
          `${grouped(data.left_out)} tensors are left out: these are the most noticeable ones.`,
        )
      : "",
    el(
      "div",
      { class: "controls" },
      el("label", null, "Filter by name (* any text)", filter),
      count,
      el(
        "button",
        {
          type: "button",
          on: {
            click: () => {
              area.value = tsv();
              copyText(area.value, area);
            },
          },
        },
        "Copy as TSV",
      ),
      area,
    ),
    el(
      "div",
      { class: "scroll sortable", tabindex: 0, role: "region", "aria-label": "Table of tensors" },
      el(
        "table",
        null,
        el("caption", { class: "hidden" }, "All tensors"),
        el("thead", null, el("tr", null, ...heads, el("th", { scope: "col" }, "histogram"))),
        body,
      ),
    ),
  );
  draw();
}

// ---- what do its values look like? ----

let openTensor = () => {};
const bytesOf = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
function grid(p, text, label, colourOf) {
  const bytes = bytesOf(text),
    node = el("canvas", { class: "grid", role: "img", "aria-label": label });
  node.width = p.columns;
  node.height = p.rows;
  const c = node.getContext("2d");
  bytes.forEach((byte, i) => {
    c.fillStyle = colourOf(byte);
    c.fillRect(i % p.columns, Math.floor(i / p.columns), 1, 1);
  });
  return el("figure", null, node, el("figcaption", null, label));
}
function lines(values, label) {
  const most = Math.max(...values) || 1;
  const picture = canvas("lines", label, (c, w, h, colour) => {
    c.fillStyle = colour("link");
    values.forEach((x, i) =>
      c.fillRect(
        (i * w) / values.length,
        h - (x / most) * (h - 4),
        w / values.length - 0.5,
        (x / most) * (h - 4),
      ),
    );
  });
  return el("figure", null, picture.node, el("figcaption", null, `${label}; the largest is ${short(most)}`));
}
function mixed(byte) {
  const part = (byte - 128) / 127,
    base = part < 0 ? [47, 127, 214] : [232, 130, 30];
  return `rgb(${base.map((x) => Math.round(245 + (x - 245) * Math.abs(part))).join(",")})`;
}
function one() {
  const host = el("div"),
    pictured = new Map(data.pictures.map((p) => [p.tensor, p]));
  const fixed = redraws.length;
  const choices = tensors.map((t, i) => [
    i,
    `${t.marked ? "! " : ""}${show(t.name)}${pictured.has(i) ? " (picture)" : ""}`,
  ]);
  const choice = select("Tensor", choices, (value) => draw(Number(value)));
  function draw(i) {
    const t = tensors[i],
      p = pictured.get(i);
    redraws.length = fixed;
    const facts = [
      ["type", t.type],
      ["shape", `[${t.shape.join(", ")}]`],
      ["values", grouped(t.values)],
      ["size", size(t.bytes)],
      ["min", short(t.min, 5)],
      ["max", short(t.max, 5)],
      ["mean", short(t.mean, 5)],
      ["std", short(t.std, 5)],
      ["zeros", grouped(t.zeros || 0)],
      ["subnormals", grouped(t.subnormals || 0)],
      ["NaN", grouped(t.nans || 0)],
      ["infinities", grouped(t.infinities || 0)],
      ...(t.odd
        ? [["oddest figure", `${oddness(t)}${t.marked ? ", marked" : ""}`]]
        : []),
      ...types.map((type, k) => [
        `as ${type.type}`,
        t.types && t.types[k] ? `${short(t.types[k][0], 4)} dB, ${size(t.types[k][1])}` : "not measured",
      ]),
    ];
    host.replaceChildren(
      el("h3", null, bdi(t.name)),
      t.error ? el("p", { class: "warning" }, `Not read: ${show(t.error)}`) : "",
      el(
        "dl",
        { class: "facts" },
        ...facts.map(([name, value]) => el("div", null, el("dt", null, name), el("dd", null, value))),
      ),
    );
    if (t.histogram)
      host.append(
        el(
          "p",
          null,
          `2^${t.first} `,
          el("span", { class: "spark", "aria-hidden": "true" }, bars(t)),
          ` 2^${t.first + t.histogram.length}`,
        ),
      );
    if (p)
      host.append(
        el(
          "p",
          { class: "note" },
          `As a matrix of ${grouped(p.height)} x ${grouped(p.width)}, in ${p.rows} x ${p.columns} blocks.`,
        ),
        el(
          "div",
          { class: "lists" },
          grid(
            p,
            p.means,
            `mean of each block, blue below 0, orange above; strongest: ${short(p.mean_limit)}`,
            mixed,
          ),
          grid(
            p,
            p.absmaxes,
            `largest magnitude of each block, 2^${short(p.absmax_low)} to 2^${short(p.absmax_high)}, bright is large; black: nothing but 0 or NaN`,
            (byte) => (byte ? sequence((byte - 1) / 254) : "#000"),
          ),
          el(
            "div",
            null,
            lines(p.row_rms, "root mean square of rows"),
            lines(p.column_rms, "root mean square of columns"),
          ),
        ),
      );
    else
      host.append(
        el(
          "p",
          { class: "note" },
          "The page has pictures of the most noticeable tensors only; tenon report --only NAME makes one of any.",
        ),
      );
    redraws.slice(fixed).forEach((paint) => paint());
  }
  const node = section(
    "tensor",
    "One tensor",
    "What do its values look like?",
    el("div", { class: "controls" }, choice.node),
    host,
  );
  openTensor = (i, quietly) => {
    choice.select.value = i;
    draw(i);
    if (!quietly) {
      node.scrollIntoView();
      choice.select.focus();
    }
    say(`${show(tensors[i].name)} is shown under One tensor.`);
  };
  if (tensors.length) openTensorFirst = () => draw(data.pictures.length ? data.pictures[0].tensor : 0);
}
let openTensorFirst = () => {};

nav.append(el("a", { href: "#summary" }, "Summary"));
if (tensors.length) {
  treemap();
  matrix();
  strip();
  typesView();
  difference();
  tableView();
  one();
  redraw();
  openTensorFirst();
  if (data.pictures.length) document.querySelector("#tensor select").value = data.pictures[0].tensor;
}
